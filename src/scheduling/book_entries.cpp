#include "scheduling/book_entries.h"

#include <algorithm>

#include "model/job_spec.h"
#include "scheduling/backfill/running_ends.h"
#include "scheduling/order/starvation_queue.h"

namespace gpu_platform::scheduling {

base::Duration time_limit_of(const model::Job& job, const model::Attempt& attempt) {
  const base::Duration limit =
      model::limit_at_speed(job.spec->time_limit, attempt.allocation.speed);
  return std::min(limit, attempt.limit_by_budget.value_or(limit));
}

base::Instant end_by_limit(const model::Job& job, const model::Attempt& attempt) {
  switch (attempt.state) {
    case model::AttemptState::kRequested:
      return attempt.requested_at + time_limit_of(job, attempt);
    case model::AttemptState::kRunning:
      return attempt.started_at + time_limit_of(job, attempt);
    default:
      return RunningEnds::kAnyTime;
  }
}

base::Instant latest_end(const model::Job& job, const model::Attempt& attempt) {
  const base::Instant end = end_by_limit(job, attempt);
  return yields(job, attempt) ? attempt.yields_at : end;
}

bool yields(const model::Job& job, const model::Attempt& attempt) {
  return attempt.yields_at.is_set() && attempt.yields_at < end_by_limit(job, attempt);
}

WaitingJob waiting_job(const model::Job& job) {
  return {job.id,         job.spec,          job.submitted_at, job.prolog_failed_on,
          job.avoid_gpus, job.overdue_since, job.preemptions,  job.stopped_for_it.has_value(),
          job.turn};
}

bool counts_as_waiting(model::JobState state) {
  return model::is_waiting(state) || state == model::JobState::kHeld ||
         state == model::JobState::kSuspended || state == model::JobState::kPreempted;
}

QuotaUse held_use(const model::Job& job, const model::Attempt& attempt,
                  base::Instant period_begin) {
  QuotaUse use = use_of_start(*job.spec, time_limit_of(job, attempt));
  if (attempt.requested_at < period_begin) use.committed = 0;
  return use;
}

Lending::Held held_of(const Pools& lending, const model::Policy& policy, const model::Job& job,
                      const model::Attempt& attempt) {
  const auto* pool = lending.of_type(attempt.gpu_type);
  if (pool == nullptr) return {};
  const Guarantees& guarantees = pool->second.balance().guarantees();
  return {{job.id, attempt.number},
          attempt.requested_at,
          pool_ask(guarantees, policy, *job.spec, record_of(job, attempt)),
          pool->first};
}

StopRecord record_of(const model::Job& job, const model::Attempt& attempt) {
  const auto before =
      std::ranges::subrange(job.attempts.begin(), job.attempts.begin() + (attempt.number - 1));
  const auto stops =
      std::ranges::count(before, model::EndReason::kPreempted, &model::Attempt::stop_reason);
  return {static_cast<std::uint32_t>(stops), attempt.stops_above.has_value()};
}

std::optional<Victim> victim_of(const model::Policy& policy, const PreemptionHolds& holds,
                                const Pools& lending, const model::Job& job,
                                const model::Attempt& attempt) {
  if (attempt.state != model::AttemptState::kRunning || job.state != model::JobState::kRunning ||
      !model::is_preemptible(*job.spec, policy)) {
    return std::nullopt;
  }
  const bool yields_to_class = job.preemptions < policy.max_preemptions_per_job;
  if (!yields_to_class && !attempt.is_borrowed) return std::nullopt;
  const model::AttemptId id{job.id, attempt.number};
  const bool is_taken = std::ranges::any_of(holds.all(), [&](const auto& entry) {
    return std::ranges::binary_search(entry.second.victims, id);
  });
  if (is_taken) return std::nullopt;
  const auto own = job.spec->priority.priority_class;
  const model::TeamRules rules = model::team_rules(policy, job.spec->team);
  const auto* pool = attempt.is_borrowed ? lending.of_type(attempt.gpu_type) : nullptr;
  return Victim{
      .attempt = id,
      .priority_class = model::higher(own, attempt.stops_above.value_or(own)),
      .started_at = attempt.started_at,
      .allocation = attempt.allocation,
      .yields_to_class = yields_to_class,
      .is_borrowed = attempt.is_borrowed,
      .pool = pool == nullptr ? std::string() : pool->first,
      .yields_to_overdue = yields_to_class && !attempt.began_overdue && !attempt.stops_above,
      .team = StarvationQueue::team_of(*job.spec),
      .preempt_min_runtime = rules.preempt_min_runtime,
      .reclaim_min_runtime = rules.reclaim_min_runtime,
      .stops = job.preemptions};
}

QuotaLedger quotas_of(const base::PersistentMap<model::Job>& jobs,
                      const model::Organisation& organisation, const PeriodUse& period_use) {
  QuotaLedger quotas;
  if (!limits_anything(organisation)) return quotas;
  jobs.for_each([&](std::uint64_t, const model::Job& job) {
    if (counts_as_waiting(job.state)) quotas.add(organisation, *job.spec, {.waiting_jobs = 1});
    for (const model::Attempt& attempt : job.attempts) {
      if (!model::holds_resources(attempt.state)) continue;
      quotas.add(organisation, *job.spec, held_use(job, attempt, period_use.begin),
                 attempt.gpu_type);
    }
  });
  quotas.add_used(organisation, period_use);
  return quotas;
}

Pools lending_of(const base::PersistentMap<model::Job>& jobs, const model::Policy& policy,
                 const GpusByType& gpus_by_type) {
  Pools lending(guarantees_of(*policy.organisation, gpus_by_type));
  if (!lending.is_active()) return lending;
  jobs.for_each([&](std::uint64_t, const model::Job& job) {
    for (const model::Attempt& attempt : job.attempts) {
      if (!model::holds_resources(attempt.state)) continue;
      lending.add(held_of(lending, policy, job, attempt));
    }
  });
  return lending;
}

}  // namespace gpu_platform::scheduling
