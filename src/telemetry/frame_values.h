#pragma once

#include <vector>

#include "model/gpu_metrics.h"
#include "model/host_metrics.h"
#include "telemetry/frame.h"

namespace gpu_platform::telemetry {

// The values of a frame of a GPU or a host: those that were read, as whole numbers in the metric's
// unit. Yes is 1, and an enumeration its number. What is too large for that is absent.
std::vector<Value> values_of(const model::GpuMetrics& gpu);
std::vector<Value> values_of(const model::HostMetrics& host);

}  // namespace gpu_platform::telemetry
