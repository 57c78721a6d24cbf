#include "controller/retention.h"

#include <algorithm>
#include <optional>

namespace gpu_platform::controller {

namespace {

// What ended before it has been kept long enough; nothing if it is kept for ever.
std::optional<base::Instant> end_of_keeping(base::Duration keep, base::Instant now) {
  if (keep == base::Duration()) return std::nullopt;
  return now + (base::Duration() - keep);
}

}  // namespace

base::Result<RetentionStep> Retention::step(const model::Policy& policy, base::Instant now) {
  RetentionStep step;
  TRY(look_at_outputs(policy, now, step));
  TRY(look_at_history(policy, now, step));
  return step;
}

base::Status Retention::look_at_outputs(const model::Policy& policy, base::Instant now,
                                        RetentionStep& step) {
  const auto until = end_of_keeping(policy.output_keep, now);
  if (!until) return {};
  TRY_ASSIGN(const std::vector<store::JobEnding> endings, archive_.endings(cleared_, kJobsPerStep));
  for (const store::JobEnding& ending : endings) {
    if (ending.ended_at >= *until) return {};
    if (has_output_(ending.job)) step.outputs.push_back(ending.job);
    if (step.outputs.empty()) cleared_ = ending;
  }
  step.has_more = endings.size() == kJobsPerStep && step.outputs.empty();
  return {};
}

base::Status Retention::look_at_history(const model::Policy& policy, base::Instant now,
                                        RetentionStep& step) {
  const auto until = end_of_keeping(policy.job_keep, now);
  std::uint64_t too_many = 0;
  if (policy.max_ended_jobs != 0) {
    TRY_ASSIGN(const std::uint64_t count, archive_.job_count());
    too_many = count - std::min(count, policy.max_ended_jobs);
  }
  if (!until && too_many == 0) return {};
  TRY_ASSIGN(const std::vector<store::JobEnding> endings, archive_.endings({}, kJobsPerStep));
  std::uint64_t seen = 0;
  for (const store::JobEnding& ending : endings) {
    const bool is_beyond = seen++ < too_many;
    const bool is_over = until && ending.ended_at < *until;
    if (!is_beyond && !is_over) return {};
    auto& removed = has_output_(ending.job) ? step.outputs : step.jobs;
    if (std::ranges::find(removed, ending.job) == removed.end()) removed.push_back(ending.job);
  }
  step.has_more = step.has_more || (endings.size() == kJobsPerStep && !step.jobs.empty());
  return {};
}

}  // namespace gpu_platform::controller
