#pragma once

#include "base/result.h"
#include "controller/state.h"
#include "model/command.h"
#include "model/event.h"

// Checks whether a submission has a place in the queue, and in the memory that jobs take. Each user
// may have a part of both, and the last part of the whole is root's, so that a user who has filled
// them does not keep root from its work. For administrators, and for the user that the daemon runs
// as, only the limit of the whole counts.

namespace gpu_platform::controller {

base::Status check_queue_limits(const State& state, const model::Caller& caller,
                                const model::JobSpec& spec);

// Checks a longer name or more labels, which each member of an array may get by itself.
base::Status check_growth(const State& state, const model::Caller& caller, const model::Job& job,
                          const model::JobChanged& change);

}  // namespace gpu_platform::controller
