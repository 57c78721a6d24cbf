#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "controller/state.h"
#include "model/job.h"

// Limits over time, told by apply() as it happens.

namespace gpu_platform::controller {

// The attempt gives back what it held: what it used of the period is noted.
void count_period_use(State& state, const model::Job& job, const model::Attempt& attempt);

// Other limits, or another period: what they are measured by is worked out anew.
void follow_limits(State& state, base::Instant at);
void begin_period(State& state, base::Instant begin);

// When the present period of GPU-hours ends; nothing where none are limited.
std::optional<base::Instant> period_end(const State& state);

// Limits that are passed although they were not lowered since: there should be none.
std::vector<std::string> passed_quotas(const State& state);

}  // namespace gpu_platform::controller
