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

// Between two steps while there is more to do: the loop and the disk are for others, too. The
// launcher removes the output of a step's jobs in less as a rule.
constexpr base::Duration kShortPause = base::milliseconds(20);
// Between two looks otherwise.
constexpr base::Duration kLongPause = base::seconds(2);
// About a quarter of a minute.
constexpr int kTimesUntilStuck = 12;

// After so many requests for the same output.
base::Duration pause_after(int times) {
  base::Duration pause = kShortPause;
  for (int i = 1; i < times && pause < kLongPause; ++i) pause = pause * 2;
  return std::min(pause, kLongPause);
}

}  // namespace

RetentionPace::Turn RetentionPace::after(const RetentionStep& step, base::Instant now) {
  Turn turn{.pause = kShortPause};
  if (step.outputs != asked_) {
    asked_ = step.outputs;
    times_ = 0;
    ask_again_at_ = now;
  }
  if (!asked_.empty() && now >= ask_again_at_) {
    turn.asks = true;
    turn.is_stuck = ++times_ == kTimesUntilStuck;
    ask_again_at_ = now + pause_after(times_);
  }
  // While jobs leave, others come into view behind those whose output is still there.
  if (!step.jobs.empty() || step.has_more) return turn;
  turn.pause = asked_.empty() ? kLongPause : ask_again_at_ - now;
  return turn;
}

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
