#pragma once

#include <optional>

#include "base/result.h"
#include "controller/state.h"
#include "model/command.h"
#include "model/event.h"

namespace gpu_platform::controller {

// Returns the exchange of turns that raises the jobs of the command above the other jobs in the
// queue of their user, team and class; nothing if they are there already. Overdue jobs keep their
// places, which are before all of these. Jobs that are not in the queue take no part: a job
// that passed one that cannot start would gain a place at the cost of other users. Cost: O(jobs in
// the queue).
base::Result<std::optional<model::JobsRaised>> judge_raise(const State& state,
                                                           const model::Caller& caller,
                                                           const model::RaiseJob& command);

}  // namespace gpu_platform::controller
