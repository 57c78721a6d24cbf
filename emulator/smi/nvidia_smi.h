#pragma once

#include <span>
#include <string>

namespace gpu_emulator {

// Runs the program with these arguments and returns its exit code.
int run_nvidia_smi(std::span<const std::string> words);

}  // namespace gpu_emulator
