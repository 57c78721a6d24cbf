#pragma once

#include <string>

#include "hardware/readings.h"

namespace gpu_platform::node {

// Returns what in these readings of a GPU that does nothing says that it must not work, for people;
// empty: nothing.
std::string objection_to_readings(const hardware::GpuReading& reading,
                                  const model::GpuSlowMetrics& slow);

}  // namespace gpu_platform::node
