#pragma once

#include <cstdint>
#include <optional>

#include "base/persistent_map.h"
#include "base/units.h"
#include "model/job.h"
#include "model/policy.h"
#include "scheduling/pools/lending.h"
#include "scheduling/preemption/preemption_holds.h"
#include "scheduling/preemption/victim_index.h"
#include "scheduling/quota/period_use.h"
#include "scheduling/quota/quota_ledger.h"
#include "scheduling/waiting_queue.h"

// What a job and its attempts come to in the books: each entry as a function of what is so.

namespace gpu_platform::scheduling {

// What the attempt may run: the job's time limit at the speed of the attempt's GPUs.
base::Duration time_limit_of(const model::Job& job, const model::Attempt& attempt);

// When the attempt, which holds resources, will have given them back by its limits: from its start,
// or, while it is not seen running, from when that was asked for. Once it is being ended, at any
// moment.
base::Instant end_by_limit(const model::Job& job, const model::Attempt& attempt);
// The same, or an earlier time at which it is to stop for the jobs that it was let in front of.
base::Instant latest_end(const model::Job& job, const model::Attempt& attempt);
// Whether it is the latter.
bool yields(const model::Job& job, const model::Attempt& attempt);

// How the queue knows the job.
WaitingJob waiting_job(const model::Job& job);

// True in the states in which a job counts against limits of waiting jobs.
bool counts_as_waiting(model::JobState state);

// What the attempt counts for against limits while it holds something. Its time limit is the job's
// present one; what began before the period counts there.
QuotaUse held_use(const model::Job& job, const model::Attempt& attempt, base::Instant period_begin);

// What it counts for on guaranteed GPUs; nothing where none are guaranteed.
Lending::Held held_of(const Lending& lending, const model::Policy& policy, const model::Job& job,
                      const model::Attempt& attempt);

// The attempt as one that may be stopped to make room for another job; nothing where it may not, or
// is a victim already.
std::optional<Victim> victim_of(const model::Policy& policy, const PreemptionHolds& holds,
                                const model::Job& job, const model::Attempt& attempt);

// Computes afresh for all jobs what counts against limits, and which attempts borrow. Cost: the
// jobs, if anything is limited or guaranteed; else none.
QuotaLedger quotas_of(const base::PersistentMap<model::Job>& jobs,
                      const model::Organisation& organisation, const PeriodUse& period_use);
Lending lending_of(const base::PersistentMap<model::Job>& jobs, const model::Policy& policy,
                   std::uint64_t cluster_gpus);

}  // namespace gpu_platform::scheduling
