#pragma once

#include <functional>
#include <vector>

#include "controller/apply/application.h"

// Preemption holds, and the attempts that may be stopped for them.

namespace gpu_platform::controller {

// The preemption hold of the beneficiary, if there is one, is over, with any result: victims
// that were not told yet are spared.
void drop_hold(Application& a, model::JobId beneficiary);
void drop_holds_that(Application& a,
                     const std::function<bool(const model::PreemptionHold&)>& is_over);
// Drops the holds on the node's GPUs that have left service, or give no such part any more.
void drop_holds_that_cannot_be_met(Application& a, const model::Node& node);
// Drops the holds of parts of GPUs.
void drop_holds_of_parts(Application& a);
// Drops the holds whose victims may not be stopped any more.
void drop_holds_that_outrank_nobody(Application& a);

// Returns the jobs that were chosen to be stopped for the beneficiary.
std::vector<model::JobId> jobs_stopped_for(const State& state, model::JobId beneficiary);

// Tells the books that something about all attempts that hold resources has changed.
void update_held_attempts(Application& a);

}  // namespace gpu_platform::controller
