#pragma once

#include <optional>

#include "controller/state.h"
#include "execution/engine.h"

// What follows from the watchdog of the memory of parts of GPUs.

namespace gpu_platform::controller {

// Returns the stop of the attempt if it runs and has a part of that GPU; nothing if it is told to
// stop already, or has ended.
std::optional<model::Event> judge_gpu_memory(const State& state,
                                             const execution::GpuMemoryExceeded& seen);

}  // namespace gpu_platform::controller
