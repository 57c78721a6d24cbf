#include "controller/quota_use.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "model/job_spec.h"
#include "scheduling/book_entries.h"

namespace gpu_platform::controller {

void count_period_use(State& state, const model::Job& job, const model::Attempt& attempt) {
  const bool is_of_period = attempt.requested_at >= state.books->period_use->begin;
  if (!state.limits_hours || !is_of_period || !attempt.started_at.is_set()) return;
  // Never more than was committed: the grace and the cleaning are the platform's.
  const base::Duration ran =
      std::min(attempt.ended_at - attempt.started_at, scheduling::time_limit_of(job, attempt));
  state.books.add_used(*job.spec, attempt.gpu_type,
                       scheduling::gpu_time(scheduling::gpu_share_of(job.spec->request), ran));
}

void follow_limits(State& state, base::Instant at) {
  const model::Organisation& organisation = *state.policy->organisation;
  state.limits_set_at = at;
  state.limits_hours = scheduling::limits_hours(organisation);
  const base::Instant begin = model::begin_of(organisation.period, at);
  const bool is_another = state.books->period_use->begin != begin;
  if (state.limits_hours && is_another) return begin_period(state, begin);
  state.books.follow_limits(state.jobs, state.books->period_use);
}

void begin_period(State& state, base::Instant begin) {
  state.books.follow_limits(state.jobs, scheduling::PeriodUse{begin, {}});
}

std::optional<base::Instant> period_end(const State& state) {
  if (!state.limits_hours) return std::nullopt;
  return state.books->period_use->begin + model::length_of(state.policy->organisation->period);
}

namespace {

// If a limit was lowered below the present use, a job that asks for nothing of it may still start.
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
    const model::Attempt& attempt = job->attempts.at(id.attempt - 1);
    if (attempt.requested_at <= state.limits_set_at) continue;
    for (const auto& limit : scheduling::limits_of(*state.policy->organisation, *job->spec)) {
      auto excess = scheduling::present_excess(limit, state.books->quotas);
      if (!excess) {
        excess = scheduling::present_excess_on_type(limit, attempt.gpu_type, state.books->quotas);
      }
      if (excess && counts_for(*job->spec, excess->kind)) {
        found.push_back(
            fmt::format("quota: {} since job {} was started", describe(*excess), id.job.value));
      }
    }
  }
  return found;
}

}  // namespace gpu_platform::controller
