#pragma once

#include "controller/judge/audit.h"
#include "controller/state.h"
#include "execution/engine.h"

// What follows from jobs that do not use their GPUs.

namespace gpu_platform::controller {

// Returns the stop of the attempt and its entry in the audit trail if it runs; nothing if it is
// told to stop already, or has ended.
Events judge_idle(const State& state, const execution::AllocationIdle& seen);

}  // namespace gpu_platform::controller
