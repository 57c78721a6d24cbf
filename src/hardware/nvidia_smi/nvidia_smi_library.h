#pragma once

#include <expected>
#include <memory>
#include <string>

#include "hardware/gpu_library.h"

namespace gpu_platform::hardware {

// The last resort where NVML cannot be opened: runs nvidia-smi for every round of readings, without
// a shell and with a limit of 10 s. Opened when it lists at least one GPU. It knows no links and no
// events, and of processes only those that compute. kNoLibrary: there is no such program.
std::expected<std::unique_ptr<GpuLibrary>, LibraryProblem> open_nvidia_smi(
    const std::string& program);

}  // namespace gpu_platform::hardware
