#pragma once

#include <cstdint>
#include <optional>

#include "base/persistent_map.h"
#include "base/units.h"
#include "model/job.h"
#include "model/policy.h"
#include "scheduling/pools/pools.h"
#include "scheduling/preemption/preemption_holds.h"
#include "scheduling/preemption/victim_index.h"
#include "scheduling/quota/period_use.h"
#include "scheduling/quota/quota_ledger.h"
#include "scheduling/waiting_queue.h"

// The entries of the books about a job and its attempts. Each entry is a function of the job's
// state.

namespace gpu_platform::scheduling {

// Returns the time that the attempt may run: the job's time limit at the speed of the attempt's
// GPUs, or less by the job's own budget.
base::Duration time_limit_of(const model::Job& job, const model::Attempt& attempt);

// Returns when the attempt, which holds resources, will have given them back by its limits. The
// time counts from its start or, until it is seen running, from the request for its start. An
// attempt that is being ended may give them back at any moment.
base::Instant end_by_limit(const model::Job& job, const model::Attempt& attempt);
// The same, or an earlier time at which it is to stop for the jobs that it passed.
base::Instant latest_end(const model::Job& job, const model::Attempt& attempt);
// Returns whether that earlier time applies.
bool yields(const model::Job& job, const model::Attempt& attempt);

// Returns the job as the queue knows it.
WaitingJob waiting_job(const model::Job& job);

// Returns true in the states in which a job counts against limits of waiting jobs.
bool counts_as_waiting(model::JobState state);

// Returns what the attempt counts against limits while it holds something. Its time limit is the
// job's present one, on its GPUs. An attempt that began before the period counts in that period.
QuotaUse held_use(const model::Job& job, const model::Attempt& attempt, base::Instant period_begin);

// Returns what it counts on guaranteed GPUs; nothing if none are guaranteed.
Lending::Held held_of(const Pools& lending, const model::Policy& policy, const model::Job& job,
                      const model::Attempt& attempt);

// Returns the record that the attempt began with: how often the job had been stopped before, and
// whether others were stopped for it.
StopRecord record_of(const model::Job& job, const model::Attempt& attempt);

// The attempt as one that may be stopped to make room for another job; nothing where it may not, or
// is a victim already.
std::optional<Victim> victim_of(const model::Policy& policy, const PreemptionHolds& holds,
                                const Pools& lending, const model::Job& job,
                                const model::Attempt& attempt);

// Computes afresh, for all jobs, the use that counts against limits and the attempts that borrow.
// Cost: all jobs if anything is limited or guaranteed; else none.
QuotaLedger quotas_of(const base::PersistentMap<model::Job>& jobs,
                      const model::Organisation& organisation, const PeriodUse& period_use);
Pools lending_of(const base::PersistentMap<model::Job>& jobs, const model::Policy& policy,
                 const GpusByType& gpus_by_type);

}  // namespace gpu_platform::scheduling
