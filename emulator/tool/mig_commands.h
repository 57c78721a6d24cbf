#pragma once

#include <string>

#include "tool/commands.h"

// The commands of gpu-emulator for MIG, on an open state.

namespace gpu_emulator {

// "13" names a GPU instance, "13/0" a compute instance; nothing the whole GPU.
Result<InstanceId> parse_instance(const std::string& text);

// Returns what was made, for tests to go on with: "13/0 MIG-…", or "13" without compute instance.
Result<std::string> change_mig(StateFile& file, std::uint32_t gpu, const MigOptions& options);

// The mode of MIG stays over a reboot on Ampere, where the GPU keeps it; later GPUs begin as their
// board says.
Status reboot_gpu(StateFile& file, std::uint32_t gpu);

}  // namespace gpu_emulator
