#pragma once

#include <string>
#include <vector>

#include "smi/gpu.h"

namespace gpu_emulator {

struct ResetOutcome {
  std::string text;
  int exit_code = 0;
};

// Resets these GPUs of the emulated board that GPU_EMULATOR_STATE names: all of them, or none where
// a process is on one of them. Real GPUs are NVIDIA's own program's.
ResetOutcome reset_emulated(const std::vector<Gpu>& gpus);

}  // namespace gpu_emulator
