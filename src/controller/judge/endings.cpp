#include "controller/judge/endings.h"
#include "model/job_spec.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/parse.h"
#include "controller/job_budget.h"

namespace gpu_platform::controller {

using model::Attempt;
using model::AttemptState;
using model::EndReason;
using model::Job;
using model::JobTrigger;

namespace {

// The cluster took its place away, and no order of ours did: no fault of the job, which begins anew
// elsewhere. If it cannot, it has failed.
bool was_evicted(const Job& job, const Attempt& attempt) {
  return attempt.reason == EndReason::kPreempted && attempt.stop_reason == EndReason::kNone &&
         model::can_begin_anew(*job.spec);
}

// Returns whether a process of it was there. A pod may be evicted before it has one.
bool has_run(const execution::Ended& seen) {
  if (seen.reason == EndReason::kPreempted) return seen.exit.code || seen.exit.signal;
  return seen.reason != EndReason::kLaunchFailed && seen.reason != EndReason::kPrologFailed &&
         seen.reason != EndReason::kEnvironmentLost && seen.exit.lost == model::Lost::kNo;
}

// The attempt was stopped at a time limit that had been raised; the order had not reached it yet.
bool was_given_more_time(const Job& job, const Attempt& attempt, const execution::Ended& seen) {
  return attempt.reason == EndReason::kTimeLimit && seen.time_limit &&
         *seen.time_limit < time_limit_of(job, attempt) && model::can_begin_anew(*job.spec);
}

// It failed because of another job on its GPU, and could begin anew.
bool is_neighbours_fault(const Job& job, const Attempt& attempt, const execution::Ended& seen) {
  return !seen.neighbour_fault.empty() && attempt.stop_reason == EndReason::kNone &&
         model::can_begin_anew(*job.spec);
}

// So many of its attempts in a row ended so that this one counts as its own failure.
bool had_too_many_neighbours_faults(const Job& job) {
  return job.neighbour_faults >= model::kMaxNeighbourFaults;
}

struct HookFailure {
  std::string_view hook;  // "prolog"
  model::NodeId node;
  model::JobId former;  // the job for which it last failed there; none since it succeeded
  model::JobId job;
  const std::string& detail;
};

// The hook of one job may fail because of the job. If those of two jobs in a row fail, the node is
// at fault.
void drain_if_second(const State& state, const HookFailure& failure, Events& events) {
  const bool is_second = failure.former.valid() && failure.former != failure.job;
  const model::Node& node = *state.nodes.find(failure.node.value);
  if (!is_second || model::find_taint(node.taints, model::TaintSource::kHooks) != nullptr) return;
  events.push_back(model::TaintChanged{
      failure.node,
      {},
      {model::TaintSource::kHooks,
       model::TaintEffect::kNoNewWork,
       fmt::format("the site's {} failed for jobs {} and {} in a row: {}", failure.hook,
                   failure.former.value, failure.job.value, failure.detail),
       "system",
       {}}});
}

base::Duration backoff_after(const model::Policy& policy, std::size_t tries) {
  base::Duration backoff = policy.retry_backoff;
  for (std::size_t i = 0; i < tries && backoff < policy.max_retry_backoff; ++i) {
    backoff = backoff * 2;
  }
  return std::min(backoff, policy.max_retry_backoff);
}

// Decides about the job of an attempt that has just ended. An acknowledged order that came before
// the report of this end is carried out, however the attempt ended.
class Settlement {
 public:
  // `attempt`: as it has ended. `blame`: null: no GPU is to blame.
  Settlement(const model::Policy& policy, const Job& job, const Attempt& attempt,
             const HardwareBlame* blame, base::Instant now)
      : policy_(policy), job_(job), attempt_(attempt), blame_(blame), now_(now) {}

  model::Event of(const execution::Ended& seen) const {
    // What it stands for is gone: there is nothing that could run again.
    const bool is_gone = attempt_.reason == EndReason::kCancelledBy;
    if (is_gone || is_stopped_by_person(attempt_)) return ended(JobTrigger::kCancel);
    if (blame_ != nullptr) return by_hardware();
    if (is_neighbours_fault(job_, attempt_, seen)) return by_neighbour();
    const bool is_evicted = was_evicted(job_, attempt_);
    const bool comes_back =
        is_evicted || goes_back(job_, attempt_) || was_given_more_time(job_, attempt_, seen);
    if (!comes_back) return by_end();
    if (attempt_.exit.code == 0 && job_.spec->complete_on_exit_zero) {
      return ended(JobTrigger::kComplete);
    }
    const bool preempted = is_evicted || attempt_.stop_reason == EndReason::kPreempted;
    return model::JobRequeued{
        .job = job_.id, .eligible_at = now_, .preempted = preempted, .asked_for = !preempted};
  }

 private:
  // No retry is used, until the bound.
  model::Event by_neighbour() const {
    if (had_too_many_neighbours_faults(job_)) return requeued_or_failed(true);
    return model::JobRequeued{.job = job_.id, .eligible_at = now_, .neighbour_failed = true};
  }

  model::Event by_hardware() const {
    if (attempt_.exit.code == 0 && job_.spec->complete_on_exit_zero) {
      return ended(JobTrigger::kComplete);
    }
    // An acknowledged order to queue it again is carried out, too.
    const bool comes_back = goes_back(job_, attempt_) || !is_given_up_by_hardware(job_);
    if (!comes_back) return ended(JobTrigger::kFail);
    return model::JobRequeued{.job = job_.id,
                              .eligible_at = now_,
                              .hardware_failed = true,
                              .avoid_gpus = blame_->suspects};
  }

  // No order decides.
  model::Event by_end() const {
    if (attempt_.reason == EndReason::kTimeLimit || attempt_.reason == EndReason::kIdleTimeout ||
        attempt_.reason == EndReason::kIdle || attempt_.reason == EndReason::kBudget) {
      return ended(JobTrigger::kTimeOut);
    }
    if (attempt_.exit.lost != model::Lost::kNo) return requeued_or_failed(false);
    // However it obeyed.
    if (attempt_.reason == EndReason::kHung || attempt_.reason == EndReason::kGpuMemory) {
      return requeued_or_failed(true);
    }
    if (attempt_.reason == EndReason::kPrologFailed) return requeued_after_prolog();
    if (attempt_.reason == EndReason::kEnvironmentLost) return held_without_environment();
    if (attempt_.reason == EndReason::kLaunchFailed) {
      // A missing or forbidden program (127, 126) fails again every time; a failure of the host may
      // not.
      return attempt_.exit.code.has_value() ? ended(JobTrigger::kFail) : requeued_or_failed(false);
    }
    if (attempt_.exit.code == 0) return ended(JobTrigger::kComplete);
    return requeued_or_failed(attempt_.stop_reason == EndReason::kNone);
  }

  model::Event ended(JobTrigger how) const {
    const bool by_person = is_stopped_by_person(attempt_);
    EndReason reason = by_person ? attempt_.stop_reason : attempt_.reason;
    // It came to its own end, although it had been told to stop before that.
    if (how == JobTrigger::kComplete) reason = EndReason::kNone;
    return model::JobEnded{job_.id, how, reason, by_person ? attempt_.by : std::string(),
                           attempt_.detail};
  }

  // The end is not the job's fault and uses none of its retries.
  model::Event requeued_after_prolog() const {
    const std::size_t failed_before = job_.prolog_failed_on.size();
    return model::JobRequeued{.job = job_.id,
                              .eligible_at = now_ + backoff_after(policy_, failed_before),
                              .prolog_failed = true,
                              .holds = failed_before + 1 >= model::kMaxPrologFailures};
  }

  // It would fail again every time, by no fault of its own: a person decides.
  model::Event held_without_environment() const {
    return model::JobRequeued{
        .job = job_.id, .eligible_at = now_, .asked_for = true, .holds = true};
  }

  model::Event requeued_or_failed(bool is_failure) const {
    std::uint32_t allowed = policy_.max_loss_retries;
    if (is_failure) {
      allowed = policy_.auto_retry_failed_jobs
                    ? std::max(policy_.max_loss_retries, job_.spec->retries)
                    : job_.spec->retries;
    } else if (attempt_.exit.lost != model::Lost::kNo && !policy_.requeue_on_node_loss) {
      allowed = 0;
    }
    if (!model::can_begin_anew(*job_.spec)) allowed = 0;
    const std::uint32_t used = is_failure ? job_.failures : job_.losses;
    if (used >= allowed) return ended(JobTrigger::kFail);
    return model::JobRequeued{job_.id, now_ + backoff_after(policy_, used), false, is_failure};
  }

  const model::Policy& policy_;
  const Job& job_;
  const Attempt& attempt_;
  const HardwareBlame* blame_;
  base::Instant now_;
};

// What a person reads of the attempt.
std::string detail_of(const Job& job, const Attempt& attempt, const execution::Ended& seen) {
  if (seen.neighbour_fault.empty()) return seen.detail;
  std::string text =
      fmt::format("{}{}{}", seen.detail, seen.detail.empty() ? "" : "; ", seen.neighbour_fault);
  if (!is_neighbours_fault(job, attempt, seen)) return text;
  if (!had_too_many_neighbours_faults(job)) {
    return text + "; it is queued again, and no retry is used";
  }
  return text + fmt::format(
                    "; it counts as a failure of the job itself, because its last {} "
                    "attempts ended so, too",
                    model::kMaxNeighbourFaults);
}

// What becomes of the job of an attempt under which GPUs failed.
std::string_view what_follows_hardware(const Job& job, const Attempt& attempt) {
  if (is_stopped_by_person(attempt)) return "";
  if (goes_back(job, attempt) || !is_given_up_by_hardware(job)) {
    return "; it is queued again, and no retry is used";
  }
  if (!model::can_begin_anew(*job.spec)) {
    return "; it is not queued again, because its input is gone";
  }
  return "; it is not queued again, because GPUs have failed under it three times in two hours";
}

// The same where GPUs are to blame.
std::string detail_of(const Job& job, const Attempt& attempt, const execution::Ended& seen,
                      const HardwareBlame& blame) {
  return fmt::format("{}{}{}{}", seen.detail, seen.detail.empty() ? "" : "; ", blame.text,
                     what_follows_hardware(job, attempt));
}

// The limit at which it was stopped was that of its budget, and still is.
bool is_at_end_of_budget(const Job& job, const Attempt& attempt, const execution::Ended& seen) {
  if (seen.reason != EndReason::kTimeLimit || !attempt.limit_by_budget) return false;
  const base::Duration limit = time_limit_of(job, attempt);
  const base::Duration of_job =
      model::limit_at_speed(job.spec->time_limit, attempt.allocation.speed);
  return limit < of_job && seen.time_limit.value_or(limit) >= limit;
}

// A job that would run again ends if what is left of its budget pays for too little.
model::Event unless_unpaid(const State& state, const Job& job, const Attempt& as_ended,
                           model::Event event, base::Instant now) {
  const auto* requeued = std::get_if<model::JobRequeued>(&event);
  if (requeued == nullptr || requeued->asked_for || !as_ended.started_at.is_set()) return event;
  std::string why = why_not_again(state, job, as_ended, now);
  if (why.empty()) return event;
  return model::JobEnded{job.id, JobTrigger::kTimeOut, EndReason::kBudget, {}, std::move(why)};
}

}  // namespace

bool is_given_up(const State& state, model::AttemptId id) {
  const Attempt* attempt = find_attempt(state, id);
  return attempt != nullptr && !attempt->started_at.is_set() &&
         attempt->state == AttemptState::kCleaning;
}

std::optional<model::Event> judge_start(const State& state, const execution::Started& seen,
                                        base::Instant now) {
  const Attempt* attempt = find_attempt(state, seen.attempt);
  if (attempt == nullptr || attempt->started_at.is_set()) return std::nullopt;
  if (!model::may_have_processes(attempt->state)) return std::nullopt;
  return model::AttemptStarted{seen.attempt, seen.pid, seen.at.is_set() ? seen.at : now,
                               seen.preflight};
}

Events judge_end(const State& state, const execution::Ended& seen, base::Instant now,
                 const std::optional<HardwareBlame>& blame) {
  const Attempt* attempt = find_attempt(state, seen.attempt);
  if (attempt == nullptr || !model::may_have_processes(attempt->state)) return {};
  Events events;
  if (has_run(seen) && !attempt->started_at.is_set()) {
    // The news of its start was lost; that it ended proves it.
    events.push_back(model::AttemptStarted{seen.attempt, 0, seen.at.is_set() ? seen.at : now});
  }
  const base::Instant ended_at = seen.at.is_set() ? seen.at : now;
  const Job& job = *find_job(state, seen.attempt.job);
  Attempt as_ended = *attempt;
  as_ended.exit = seen.exit;
  as_ended.ended_at = ended_at;
  as_ended.reason = seen.reason;
  const bool is_unnamed = seen.reason == EndReason::kNone || !seen.unfit_gpus.empty();
  if (blame && is_unnamed) as_ended.reason = EndReason::kGpuFault;
  as_ended.detail = blame ? detail_of(job, *attempt, seen, *blame) : detail_of(job, *attempt, seen);
  if (is_at_end_of_budget(job, *attempt, seen)) {
    as_ended.reason = EndReason::kBudget;
    as_ended.detail = fmt::format("its budget of {} is spent",
                                  base::written(job.spec->budget.value_or(base::MicroUsd())));
  }
  if (seen.reason == EndReason::kBudget && as_ended.detail.empty()) {
    as_ended.detail = fmt::format("{} is spent", attempt->by);
  }
  events.push_back(model::AttemptEnded{seen.attempt, ended_at, seen.exit, as_ended.reason,
                                       as_ended.detail, seen.usage});
  if (has_run(seen) && !as_ended.started_at.is_set()) as_ended.started_at = ended_at;
  events.push_back(unless_unpaid(
      state, job, as_ended,
      Settlement(*state.policy, job, as_ended, blame ? &*blame : nullptr, now).of(seen), now));
  if (seen.reason == EndReason::kPrologFailed) {
    const model::NodeId node = attempt->first_node();
    const model::JobId former = state.nodes.find(node.value)->prolog_failed_for;
    drain_if_second(state, {"prolog", node, former, seen.attempt.job, seen.detail}, events);
  }
  return events;
}

Events judge_loss(const State& state, model::AttemptId id, base::Instant now) {
  execution::Ended ended;
  ended.attempt = id;
  ended.at = now;
  ended.exit.lost = model::Lost::kNodeLost;
  ended.reason = EndReason::kNodeLost;
  return judge_end(state, ended, now);
}

Events judge_cleaning(const State& state, const execution::Cleaned& seen) {
  const Attempt* attempt = find_attempt(state, seen.attempt);
  if (attempt == nullptr || attempt->state != AttemptState::kCleaning) return {};
  Events events = {model::AttemptReleased{seen.attempt, seen.epilog_failure}};
  if (seen.epilog_failure.empty()) return events;
  const model::NodeId node = attempt->first_node();
  const model::JobId former = state.nodes.find(node.value)->epilog_failed_for;
  drain_if_second(state, {"epilog", node, former, seen.attempt.job, seen.epilog_failure}, events);
  return events;
}

}  // namespace gpu_platform::controller
