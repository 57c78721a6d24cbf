#include <algorithm>
#include <utility>

#include "controller/core.h"

// What engines and probes saw, judged against the state. Late, repeated and impossible news change
// nothing: each carries its attempt, and only an attempt that can still make the step makes it.

namespace gpu_platform::controller {

using model::Attempt;
using model::AttemptState;
using model::EndReason;
using model::Job;
using model::JobState;
using model::JobTrigger;

namespace {

bool is_on(const Attempt& attempt, model::NodeId node) {
  return std::ranges::any_of(attempt.allocation.nodes,
                             [&](const auto& part) { return part.node == node; });
}

// Stopped at a limit that it no longer had: the order that raises it had not reached it yet.
bool was_given_more_time(const Job& job, const Attempt& attempt, const execution::Ended& seen) {
  return attempt.reason == EndReason::kTimeLimit && seen.time_limit &&
         *seen.time_limit < time_limit_of(job, attempt) && model::can_begin_anew(*job.spec);
}

// What runs keeps what it was given. A node that says in the same boot that it has less than that
// shrinks to what is in use, and to the rest when it is next described.
model::NodeInfo with_room_for_what_is_held(model::NodeInfo info, const model::Node& node) {
  info.cpus = std::max(info.cpus, node.cpus_used);
  info.memory = std::max(info.memory, node.memory_used);
  for (model::GpuInfo& gpu : info.gpus) {
    const auto known =
        std::ranges::find(node.gpus, gpu.uuid, [](const model::Gpu& g) { return g.info.uuid; });
    if (known == node.gpus.end()) continue;
    base::Bytes in_use;
    for (const model::GpuHolder& holder : known->holders) in_use += holder.memory;
    gpu.memory = std::max(gpu.memory, in_use);
  }
  return info;
}

}  // namespace

void Core::observe(const execution::Observation& observation, base::Instant now) {
  std::visit([&](const auto& seen) { on(seen, now); }, observation);
}

void Core::on(const execution::Started& seen, base::Instant now) {
  const Attempt* attempt = find_attempt(seen.attempt);
  if (attempt == nullptr || attempt->started_at.is_set()) return;
  if (attempt->state == AttemptState::kCleaning) {
    // Given up as lost and yet alive: its job may run elsewhere by now.
    effect(execution::StopOrder{seen.attempt, true, {}, attempt->reason});
    return;
  }
  if (model::may_have_processes(attempt->state)) {
    emit(model::AttemptStarted{seen.attempt, seen.pid, seen.at.is_set() ? seen.at : now}, now);
  }
}

void Core::on(const execution::Ended& seen, base::Instant now) {
  const Attempt* attempt = find_attempt(seen.attempt);
  if (attempt == nullptr || !model::may_have_processes(attempt->state)) return;
  const bool ran = seen.reason != EndReason::kLaunchFailed &&
                   seen.reason != EndReason::kPrologFailed && seen.exit.lost == model::Lost::kNo;
  if (ran && !attempt->started_at.is_set()) {
    // The news of its start was lost; that it ended proves it.
    emit(model::AttemptStarted{seen.attempt, 0, seen.at.is_set() ? seen.at : now}, now);
  }
  end_attempt(seen, now);
}

void Core::end_attempt(const execution::Ended& seen, base::Instant now) {
  const model::NodeId node = find_attempt(seen.attempt)->first_node();
  const model::JobId former = state_.nodes.find(node.value)->prolog_failed_for;
  emit(model::AttemptEnded{seen.attempt, seen.at, seen.exit, seen.reason, seen.detail, seen.usage},
       now);
  const Job* job = find_job(seen.attempt.job);
  settle_job(*job, job->attempts.at(seen.attempt.attempt - 1), seen, now);
  if (seen.reason != EndReason::kPrologFailed) return;
  drain_if_second({"prolog", node, former, seen.attempt.job, seen.detail}, now);
}

// One job's hook may fail by what the job is; those of two in a row fail by what the node is.
void Core::drain_if_second(const HookFailure& failure, base::Instant now) {
  const bool is_second = failure.former.valid() && failure.former != failure.job;
  const model::Node& node = *state_.nodes.find(failure.node.value);
  if (!is_second || node.state != model::NodeState::kUp) return;
  emit(model::NodeStateChanged{failure.node, model::NodeTrigger::kDrain,
                               fmt::format("the site's {} failed for jobs {} and {} in a row: {}",
                                           failure.hook, failure.former.value, failure.job.value,
                                           failure.detail),
                               "system"},
       now);
}

// It is not the job's fault and uses up none of its retries.
void Core::requeue_after_prolog(const Job& job, base::Instant now) {
  const std::size_t failed_before = job.prolog_failed_on.size();
  emit(model::JobRequeued{.job = job.id,
                          .eligible_at = now + backoff_after(failed_before),
                          .prolog_failed = true,
                          .holds = failed_before + 1 >= model::kMostPrologFailures},
       now);
}

// What becomes of the job whose attempt has just ended. What was acknowledged before this end was
// seen is what happens, however the attempt ended and whatever it ended of first.
void Core::settle_job(const Job& job, const Attempt& attempt, const execution::Ended& seen,
                      base::Instant now) {
  const bool did_well = attempt.exit.code == 0;
  if (is_stopped_by_person(attempt)) {
    end_job(job.id, JobTrigger::kCancel, attempt, now);
  } else if (goes_back(job, attempt) || was_given_more_time(job, attempt, seen)) {
    const bool preempted = attempt.stop_reason == EndReason::kPreempted;
    if (did_well && job.spec->complete_on_exit_zero) {
      end_job(job.id, JobTrigger::kComplete, attempt, now);
    } else {
      emit(
          model::JobRequeued{
              .job = job.id, .eligible_at = now, .preempted = preempted, .asked_for = !preempted},
          now);
    }
  } else {
    settle_by_end(job, attempt, now);
  }
}

// Nothing was asked for that decides.
void Core::settle_by_end(const Job& job, const Attempt& attempt, base::Instant now) {
  const bool fault_of_job = attempt.exit.code.has_value();
  if (attempt.reason == EndReason::kTimeLimit || attempt.reason == EndReason::kIdleTimeout) {
    end_job(job.id, JobTrigger::kTimeOut, attempt, now);
  } else if (attempt.exit.lost != model::Lost::kNo) {
    requeue_or_fail(job, attempt, false, now);
  } else if (attempt.reason == EndReason::kPrologFailed) {
    requeue_after_prolog(job, now);
  } else if (attempt.reason == EndReason::kLaunchFailed) {
    // A missing or forbidden program (127, 126) fails again every time; a failure of the host may
    // not.
    if (fault_of_job) {
      end_job(job.id, JobTrigger::kFail, attempt, now);
    } else {
      requeue_or_fail(job, attempt, false, now);
    }
  } else if (attempt.exit.code == 0) {
    end_job(job.id, JobTrigger::kComplete, attempt, now);
  } else {
    const bool by_itself = attempt.stop_reason == EndReason::kNone;
    requeue_or_fail(job, attempt, by_itself, now);
  }
}

void Core::end_job(model::JobId job, JobTrigger how, const Attempt& attempt, base::Instant now) {
  const bool by_person = how == JobTrigger::kCancel;
  EndReason reason = by_person ? attempt.stop_reason : attempt.reason;
  // It came to its own end, though it was told to stop before that.
  if (how == JobTrigger::kComplete) reason = EndReason::kNone;
  emit(model::JobEnded{job, how, reason, by_person ? attempt.by : std::string(), attempt.detail},
       now);
}

void Core::requeue_or_fail(const Job& job, const Attempt& attempt, bool is_failure,
                           base::Instant now) {
  const model::Policy& policy = *state_.policy;
  std::uint32_t allowed = policy.max_loss_retries;
  if (is_failure) {
    allowed = policy.auto_retry_failed_jobs ? std::max(policy.max_loss_retries, job.spec->retries)
                                            : job.spec->retries;
  } else if (attempt.exit.lost != model::Lost::kNo && !policy.requeue_on_node_loss) {
    allowed = 0;
  }
  if (!model::can_begin_anew(*job.spec)) allowed = 0;
  const std::uint32_t used = is_failure ? job.failures : job.losses;
  if (used >= allowed) {
    end_job(job.id, JobTrigger::kFail, attempt, now);
    return;
  }
  emit(model::JobRequeued{job.id, now + backoff_after(used), false, is_failure}, now);
}

base::Duration Core::backoff_after(std::size_t tries) const {
  const model::Policy& policy = *state_.policy;
  base::Duration backoff = policy.retry_backoff;
  for (std::size_t i = 0; i < tries && backoff < policy.max_retry_backoff; ++i) {
    backoff = backoff * 2;
  }
  return std::min(backoff, policy.max_retry_backoff);
}

// Only after its end: where that news is late or lost, the engine tells both again when it is
// asked, and an end that somebody knows is never called unknown.
void Core::on(const execution::Cleaned& seen, base::Instant now) {
  const Attempt* attempt = find_attempt(seen.attempt);
  if (attempt == nullptr || attempt->state != AttemptState::kCleaning) return;
  const model::NodeId node = attempt->first_node();
  const model::JobId former = state_.nodes.find(node.value)->epilog_failed_for;
  emit(model::AttemptReleased{seen.attempt, seen.epilog_failure}, now);
  make_eligible_if_due(seen.attempt.job, now);
  if (seen.epilog_failure.empty()) return;
  drain_if_second({"epilog", node, former, seen.attempt.job, seen.epilog_failure}, now);
}

void Core::on(const execution::NodeObserved& seen, base::Instant now) {
  const auto known = state_.node_ids.find(seen.info.name);
  if (known == state_.node_ids.end()) {
    emit(model::NodeSeen{model::NodeId(state_.last_node_id + 1), seen.info}, now);
    return;
  }
  const model::NodeId id = known->second;
  const std::string former_boot = state_.nodes.find(id.value)->boot_id;
  const bool rebooted = former_boot != seen.info.boot_id;
  const bool was_lost = !state_.nodes.find(id.value)->is_heard;
  // First, so that a node that comes back smaller never holds more than it has.
  if (rebooted) lose_attempts_of(id, former_boot, true, now);
  const model::Node before = *state_.nodes.find(id.value);
  const model::NodeInfo info = with_room_for_what_is_held(seen.info, before);
  if (model::info_of(before) != info) emit(model::NodeSeen{id, info}, now);
  if (was_lost) emit(model::NodeStateChanged{id, model::NodeTrigger::kSeen, {}, "node"}, now);
  take_missing_gpus_offline(before, info, now);
  if (was_lost && !rebooted) stop_given_up_attempts(id);
}

// The node came back without a new boot: what was given up there may still run, and must not.
void Core::stop_given_up_attempts(model::NodeId node) {
  for (const model::AttemptId id : state_.held_attempts) {
    const Attempt* attempt = find_attempt(id);
    if (attempt->state == AttemptState::kCleaning && is_on(*attempt, node)) {
      effect(execution::StopOrder{id, true, {}, attempt->reason});
    }
  }
}

// GPUs that the node no longer reports, and those that it reports again.
void Core::take_missing_gpus_offline(const model::Node& before, const model::NodeInfo& info,
                                     base::Instant now) {
  constexpr std::string_view kCause = "not reported by the driver any more";
  for (std::uint32_t index = 0; index < before.gpus.size(); ++index) {
    const model::Gpu& gpu = before.gpus[index];
    const bool present = std::ranges::any_of(
        info.gpus, [&](const model::GpuInfo& i) { return i.uuid == gpu.info.uuid; });
    const bool is_out = gpu.state == model::GpuState::kOffline;
    if (!present && !is_out) {
      emit(
          model::GpuStateChanged{
              {before.id, index}, model::GpuTrigger::kTakeOffline, std::string(kCause), "node"},
          now);
    } else if (present && is_out && gpu.cause == kCause) {
      emit(model::GpuStateChanged{{before.id, index}, model::GpuTrigger::kBringOnline, {}, "node"},
           now);
    }
  }
}

void Core::on(const execution::NodeUnreachable& seen, base::Instant now) {
  const auto known = state_.node_ids.find(seen.node_name);
  if (known == state_.node_ids.end()) return;
  if (!state_.nodes.find(known->second.value)->is_heard) return;
  emit(model::NodeStateChanged{known->second, model::NodeTrigger::kLose, seen.cause, "node"}, now);
  lose_attempts_of(known->second, {}, false, now);
}

// Gives up the attempts on a node that was lost or has booted anew. `is_empty`: a new boot has left
// nothing of them, so what they held there is free; otherwise it stays held until the node tells,
// and what gangs hold until all of their nodes have told.
// `boot_id`: only attempts of that boot, empty for all.
void Core::lose_attempts_of(model::NodeId node, std::string_view boot_id, bool is_empty,
                            base::Instant now) {
  std::vector<model::AttemptId> there;
  for (const model::AttemptId id : state_.held_attempts) {
    const Attempt* attempt = find_attempt(id);
    // Of a gang the boot id is that of its first node.
    const bool is_of_boot =
        boot_id.empty() || attempt->boot_id == boot_id || attempt->first_node() != node;
    if (is_on(*attempt, node) && is_of_boot) there.push_back(id);
  }
  for (const model::AttemptId id : there) {
    if (model::may_have_processes(find_attempt(id)->state)) {
      execution::Ended ended;
      ended.attempt = id;
      ended.at = now;
      ended.exit.lost = model::Lost::kNodeLost;
      ended.reason = EndReason::kNodeLost;
      end_attempt(ended, now);
    }
    if (find_attempt(id)->allocation.nodes.size() > 1) {
      // Its other nodes know nothing of it: what runs there must go before anything is given on.
      effect(execution::StopOrder{id, true, {}, EndReason::kNodeLost});
    } else if (is_empty) {
      emit(model::AttemptReleased{id}, now);
      make_eligible_if_due(id.job, now);
    }
  }
}

}  // namespace gpu_platform::controller
