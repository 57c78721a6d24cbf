#pragma once

#include <span>
#include <string>

#include "smi/arguments.h"
#include "smi/gpu.h"

namespace gpu_emulator {

// The lines of "-L" below a GPU: its MIG devices. Empty if it has none.
std::string mig_device_lines(const Gpu& gpu);

struct MigOutcome {
  std::string text;
  int exit_code = kExitOk;
};

// "mig" with the tasks that list, make and destroy instances, and "-mig". The first refusal ends
// it, as it ends the original; what was made before stays.
MigOutcome run_mig(const SmiArguments& arguments, std::span<const Gpu> gpus);

}  // namespace gpu_emulator
