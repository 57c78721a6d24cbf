#pragma once

#include <optional>

#include "base/units.h"
#include "controller/judge/events.h"
#include "controller/state.h"
#include "execution/engine.h"

// What engines saw of attempts, and what becomes of their jobs. Late, repeated and impossible news
// change nothing: each carries its attempt, and only an attempt that can still make the step makes
// it.

namespace gpu_platform::controller {

// Nothing where the start is known already or was given up.
std::optional<model::Event> judge_start(const State& state, const execution::Started& seen,
                                        base::Instant now);
// Whether it was given up as lost and is yet alive: its job may run elsewhere by now.
bool is_given_up(const State& state, model::AttemptId attempt);

// The end, and what becomes of the job. None where it is known.
Events judge_end(const State& state, const execution::Ended& seen, base::Instant now);
// That an attempt on a lost node will never tell. None where its end is known.
Events judge_loss(const State& state, model::AttemptId attempt, base::Instant now);
// What it held is free; only after its end: where that news is late or lost, the engine tells both
// again when it is asked, and an end that somebody knows is never called unknown.
Events judge_cleaning(const State& state, const execution::Cleaned& seen);

}  // namespace gpu_platform::controller
