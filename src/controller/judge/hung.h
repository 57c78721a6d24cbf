#pragma once

#include <optional>

#include "controller/state.h"
#include "execution/engine.h"

// What follows from the watchdog of a job.

namespace gpu_platform::controller {

// Returns the stop of the job's attempt if the evidence says that it hangs and it runs with a
// watchdog; nothing if it is told to stop already, or has ended.
std::optional<model::Event> judge_hung(const State& state, const execution::EvidenceObserved& seen);

}  // namespace gpu_platform::controller
