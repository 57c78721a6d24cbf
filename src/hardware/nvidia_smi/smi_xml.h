#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "hardware/readings.h"

namespace gpu_platform::hardware {

// The data of `nvidia-smi -q -x` that its tables lack.
struct SmiReport {
  DriverDescription driver;
  std::vector<GpuDescription> gpus;             // in the driver's order, by index
  std::vector<model::GpuSlowMetrics> readings;  // the same order
};

// An error where the text is not such a report; a value that is missing or unreadable is not known.
// Pure.
base::Result<SmiReport> parse_smi_report(const std::string& xml);

}  // namespace gpu_platform::hardware
