#include "controller/quota_use.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"

namespace gpu_platform::controller {

using scheduling::QuotaUse;

bool counts_as_waiting(model::JobState state) {
  return model::is_waiting(state) || state == model::JobState::kHeld ||
         state == model::JobState::kSuspended || state == model::JobState::kPreempted;
}

QuotaUse held_use(const model::Job& job, const model::Attempt& attempt,
                  base::Instant period_begin) {
  QuotaUse use = scheduling::use_of_start(*job.spec);
  // What began in an earlier period counts there.
  if (attempt.requested_at < period_begin) use.committed = 0;
  return use;
}

scheduling::QuotaLedger quotas_of(const base::PersistentMap<model::Job>& jobs,
                                  const model::Organisation& organisation,
                                  const scheduling::PeriodUse& period_use) {
  scheduling::QuotaLedger quotas;
  if (!scheduling::limits_anything(organisation)) return quotas;
  jobs.for_each([&](std::uint64_t, const model::Job& job) {
    if (counts_as_waiting(job.state)) quotas.add(organisation, *job.spec, {.waiting_jobs = 1});
    for (const model::Attempt& attempt : job.attempts) {
      if (!model::holds_resources(attempt.state)) continue;
      quotas.add(organisation, *job.spec, held_use(job, attempt, period_use.begin));
    }
  });
  for (const auto& [subject, used] : period_use.used) quotas.add_used(subject, used);
  return quotas;
}

void release_quota(State& state, const model::Job& job, const model::Attempt& attempt) {
  const model::Organisation& organisation = *state.policy->organisation;
  const base::Instant begin = state.period_use->begin;
  state.quotas.remove(organisation, *job.spec, held_use(job, attempt, begin));
  if (!state.limits_hours || attempt.requested_at < begin || !attempt.started_at.is_set()) return;
  // Never more than was committed: the grace and the cleaning are the platform's.
  const base::Duration ran =
      std::min(attempt.ended_at - attempt.started_at,
               model::longest_limit(job.spec->request, job.spec->time_limit));
  const std::uint64_t used = scheduling::gpu_time(scheduling::gpu_share_of(job.spec->request), ran);
  if (used == 0) return;
  scheduling::PeriodUse period_use = *state.period_use;
  for (const scheduling::QuotaLimit& limit : scheduling::limits_of(organisation, *job.spec)) {
    period_use.used[limit.subject] += used;
    state.quotas.add_used(limit.subject, used);
  }
  state.period_use = std::move(period_use);
}

void follow_limits(State& state, base::Instant at) {
  const model::Organisation& organisation = *state.policy->organisation;
  state.limits_set_at = at;
  state.limits_hours = scheduling::limits_hours(organisation);
  const base::Instant begin = model::begin_of(organisation.period, at);
  const bool is_another = state.period_use->begin != begin;
  if (state.limits_hours && is_another) return begin_period(state, begin);
  state.quotas.become(quotas_of(state.jobs, organisation, *state.period_use));
}

void begin_period(State& state, base::Instant begin) {
  state.period_use = scheduling::PeriodUse{begin, {}};
  state.quotas.become(quotas_of(state.jobs, *state.policy->organisation, *state.period_use));
}

std::optional<base::Instant> period_end(const State& state) {
  if (!state.limits_hours) return std::nullopt;
  return state.period_use->begin + model::length_of(state.policy->organisation->period);
}

namespace {

// Where a limit was lowered below what is held, whoever asks for none of it may start all the same.
bool counts_for(const model::JobSpec& spec, model::QuotaKind kind) {
  const bool is_of_gpus = kind == model::QuotaKind::kGpus || kind == model::QuotaKind::kGpuHours;
  return !is_of_gpus || model::total_gpus(spec.request) > 0;
}

}  // namespace

std::vector<std::string> passed_quotas(const State& state) {
  std::vector<std::string> found;
  for (const model::AttemptId id : state.held_attempts) {
    const model::Job* job = state.jobs.find(id.job.value);
    CHECK(job != nullptr);
    if (job->attempts.at(id.attempt - 1).requested_at <= state.limits_set_at) continue;
    for (const auto& limit : scheduling::limits_of(*state.policy->organisation, *job->spec)) {
      const auto excess = scheduling::present_excess(limit, state.quotas);
      if (excess && counts_for(*job->spec, excess->kind)) {
        found.push_back(
            fmt::format("quota: {} since job {} was started", describe(*excess), id.job.value));
      }
    }
  }
  return found;
}

}  // namespace gpu_platform::controller
