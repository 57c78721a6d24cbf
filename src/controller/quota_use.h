#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "controller/state.h"
#include "model/job.h"

// Limits over time; apply() reports the changes as they happen.

namespace gpu_platform::controller {

// The attempt gives back what it held: its use of the period is recorded.
void count_period_use(State& state, const model::Job& job, const model::Attempt& attempt);

// Limits or the period have changed: the use that they are measured by is computed afresh.
void follow_limits(State& state, base::Instant at);
void begin_period(State& state, base::Instant begin);

// Returns when the present period of GPU-hours ends; nothing if none are limited.
std::optional<base::Instant> period_end(const State& state);

// Finds limits that are exceeded although they were not lowered since: there should be none.
std::vector<std::string> passed_quotas(const State& state);

}  // namespace gpu_platform::controller
