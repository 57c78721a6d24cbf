#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "model/gpu_metrics.h"

namespace gpu_platform::execution {

inline constexpr std::size_t kMaxExportedGpus = 256;

// Returns what a page of NVIDIA's dcgm-exporter says of GPUs, by UUID, in the platform's units. The
// names are those of model/gpu_metrics.h, with newer ones of the same. A number that DCGM writes
// for "not available", that is no number, or that the metric cannot have is absent. Parts of a GPU
// (MIG instances) are left out, and so are GPUs after the first kMaxExportedGpus. Where a page has
// a number several times, for each pod on the GPU, the first one counts. Pure.
std::map<std::string, model::GpuMetrics> gpus_of_page(std::string_view page);

}  // namespace gpu_platform::execution
