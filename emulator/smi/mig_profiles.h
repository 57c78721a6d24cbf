#pragma once

#include <span>
#include <string>

#include "smi/gpu.h"

namespace gpu_emulator {

// The table of "mig -lgip"; empty if no GPU has a profile.
std::string profile_table(std::span<const Gpu> gpus);
// The lines of "mig -lgipp": where instances of each profile may lie.
std::string placement_lines(std::span<const Gpu> gpus);

}  // namespace gpu_emulator
