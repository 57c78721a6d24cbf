#pragma once

#include <span>

#include "sizing/memory.h"

namespace gpu_platform::sizing {

// The types of GPU that servers of language models run on, the smallest memory first, with the
// memory that NVML reports and the usual number on a node. For a question that names no GPU, where
// no cluster is at hand, or none of its types is large enough.
std::span<const GpuKind> known_gpus();

}  // namespace gpu_platform::sizing
