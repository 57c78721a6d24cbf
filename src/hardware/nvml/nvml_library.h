#pragma once

#include <expected>
#include <memory>
#include <string>

#include "hardware/gpu_library.h"

namespace gpu_platform::hardware {

// Opens NVML by dlopen (a bare name is looked for as the dynamic linker does) and initialises it.
// Each function is taken in the newest version that the library has. The problem says what to do
// about it; a library that answers and knows no GPU is opened, list_gpus() then gives kNoGpu.
std::expected<std::unique_ptr<GpuLibrary>, LibraryProblem> open_nvml(const std::string& path);

// Subscribes to all events that the GPUs support; a GPU that does not answer is left out. Null
// where neither library nor GPUs tell events.
std::expected<std::unique_ptr<GpuEventSource>, LibraryProblem> open_nvml_events(
    const std::string& path);

}  // namespace gpu_platform::hardware
