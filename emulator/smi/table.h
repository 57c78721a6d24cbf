#pragma once

#include <span>
#include <string>

#include "smi/gpu.h"

namespace gpu_emulator {

// The table that the program prints without arguments, in the form of the driver's branch: 535 and
// before are narrower, and from 580 on the processes have another column for their number.
std::string summary_table(const DriverFacts& driver, std::span<const Gpu> gpus,
                          const std::string& now);

}  // namespace gpu_emulator
