#pragma once

#include <vector>

#include "base/units.h"
#include "controller/judge/endings.h"
#include "controller/state.h"
#include "execution/engine.h"
#include "model/event.h"

// A start that was given up, because GPUs failed the check before it (model::Preflight).

namespace gpu_platform::controller {

// Returns the evidence of the failed checks, to be judged before the end is. None if the end is
// known already, or if health judges nothing. A check that passes is no evidence: jobs with checks
// may be many, and what an operator's check clears is for an operator to clear.
std::vector<model::EvidenceRecorded> failed_preflights(const State& state,
                                                       const execution::Ended& seen,
                                                       base::Instant now);

// The job keeps off all of these GPUs, whatever health.mode is.
HardwareBlame blame_unfit(const State& state, const std::vector<execution::UnfitGpu>& gpus);

}  // namespace gpu_platform::controller
