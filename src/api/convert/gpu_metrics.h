#pragma once

#include "gpu_platform/v1/cluster.pb.h"
#include "model/gpu_metrics.h"

// The metrics of a GPU that the API shows, by the table in model/gpu_metrics.h.

namespace gpu_platform::api {

// Sets the fields that the table gives to the message; what was not read stays unset.
void put_metrics(const model::GpuMetrics& gpu, v1::Gpu& out);
void put_metrics(const model::GpuMetrics& gpu, v1::GpuHealth& out);

}  // namespace gpu_platform::api
