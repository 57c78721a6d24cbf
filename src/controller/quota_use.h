#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/persistent_map.h"
#include "base/units.h"
#include "controller/state.h"
#include "model/job.h"
#include "model/policy.h"
#include "scheduling/quota/period_use.h"
#include "scheduling/quota/quota_ledger.h"

// What counts against limits, told by apply() as it happens, and worked out anew.

namespace gpu_platform::controller {

// From the jobs that have not left the core, and what those who have used in this period.
scheduling::QuotaLedger quotas_of(const base::PersistentMap<model::Job>& jobs,
                                  const model::Organisation& organisation,
                                  const scheduling::PeriodUse& period_use);

// What the attempt counts for while it holds something. Its time limit is the job's present one.
scheduling::QuotaUse held_use(const model::Job& job, const model::Attempt& attempt,
                              base::Instant period_begin);

// True in the states in which a job counts as waiting.
bool counts_as_waiting(model::JobState state);

// The attempt gives back what it held: what it used of the period is noted.
void release_quota(State& state, const model::Job& job, const model::Attempt& attempt);

// Other limits, or another period: what they are measured by is worked out anew.
void follow_limits(State& state, base::Instant at);
void begin_period(State& state, base::Instant begin);

// When the present period of GPU-hours ends; nothing where none are limited.
std::optional<base::Instant> period_end(const State& state);

// Limits that are passed although they were not lowered since: there should be none.
std::vector<std::string> passed_quotas(const State& state);

}  // namespace gpu_platform::controller
