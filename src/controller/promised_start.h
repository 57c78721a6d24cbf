#pragma once

#include <vector>

#include "controller/state.h"
#include "scheduling/plan_cycle.h"

// The planned start that is a promise ("Starts by").

namespace gpu_platform::controller {

// Returns the planned start that no job behind it and no early end moves back: that of the first
// job that waits for room. Null if a job that is there, or one that is submitted later, may come to
// stand before it with time alone: by usage, by the shares beyond guarantees, or because it becomes
// overdue before that start. `planned`: those of the cycle that follows from the state.
const scheduling::PlannedStart* promised_start(
    const State& state, const std::vector<scheduling::PlannedStart>& planned);

}  // namespace gpu_platform::controller
