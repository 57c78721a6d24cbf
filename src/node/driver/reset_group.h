#pragma once

#include <cstdint>
#include <vector>

#include "hardware/readings.h"

namespace gpu_platform::node {

// Returns the GPUs, by index and ascending, that the driver resets together with this one. From
// Hopper on each GPU is reset alone; before, all that NVLinks join, directly or through switches,
// are reset together (A100 HGX: the board).
std::vector<std::uint32_t> reset_group(const std::vector<hardware::GpuDescription>& gpus,
                                       const std::vector<hardware::GpuLink>& links,
                                       std::uint32_t index);

}  // namespace gpu_platform::node
