#pragma once

#include <span>
#include <string>

#include "smi/gpu.h"

namespace gpu_emulator {

// The matrix of "topo -m": how each two GPUs are connected, and their CPUs and NUMA nodes.
std::string topology_matrix(std::span<const Gpu> gpus);

}  // namespace gpu_emulator
