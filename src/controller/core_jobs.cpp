#include <algorithm>
#include <utility>

#include "controller/core.h"
#include "controller/lending.h"
#include "model/output_pattern.h"

// What people do with jobs that are there: stop, hold, release, requeue, change.

namespace gpu_platform::controller {

using base::ErrorCode;
using model::EndReason;
using model::Hold;
using model::Job;
using model::JobAction;
using model::JobState;
using Judged = base::Result<std::optional<model::Event>>;

namespace {

bool may_change(const model::Caller& caller, const Job& job) {
  return caller.uid == job.spec->uid || caller.is_administrator;
}

std::unexpected<base::Error> refused(std::string message, std::string field = "id") {
  return base::fail(ErrorCode::kFailedPrecondition, std::move(message), std::move(field));
}

std::unexpected<base::Error> has_ended(const Job& job, std::string_view what) {
  return refused(fmt::format("job {} is {} and cannot be {}: submit it again", job.id.value,
                             to_string(job.state), what));
}

Judged judge_stop(const model::Caller& caller, const Job& job, bool without_grace) {
  const EndReason reason = without_grace ? EndReason::kKilledBy : EndReason::kCancelledBy;
  if (model::is_ended(job.state)) return std::nullopt;
  if (!model::is_active(job.state)) {
    return model::JobEnded{job.id, model::JobTrigger::kCancel, reason, caller.user, {}};
  }
  const model::Attempt& attempt = *job.current_attempt();
  const bool nothing_new = job.state == JobState::kStopping && is_stopped_by_person(attempt) &&
                           (attempt.kill_requested || !without_grace);
  if (nothing_new) return std::nullopt;
  return model::StopRequested{{job.id, attempt.number}, reason, without_grace, caller.user};
}

Judged judge_hold(const model::Caller& caller, const Job& job) {
  if (model::is_ended(job.state)) return has_ended(job, "held");
  if (model::is_active(job.state)) {
    return refused(
        fmt::format("job {} is {}, and only a waiting job can be held: jobs requeue "
                    "--hold stops it and holds it",
                    job.id.value, to_string(job.state)));
  }
  const Hold hold = hold_by(caller, *job.spec);
  if (!model::outranks(hold, job.hold)) return std::nullopt;
  return model::JobHoldChanged{job.id, hold, caller.user};
}

Judged judge_release(const model::Caller& caller, const Job& job) {
  if (model::is_ended(job.state)) return has_ended(job, "released");
  if (job.hold == Hold::kNone) return std::nullopt;
  if (job.hold == Hold::kByAdministrator && !caller.is_administrator) {
    return base::fail(
        ErrorCode::kPermissionDenied,
        fmt::format("job {} is held by an administrator, and only an administrator can release it",
                    job.id.value),
        "id");
  }
  return model::JobHoldChanged{job.id, Hold::kNone, caller.user};
}

Judged judge_requeue(const model::Caller& caller, const Job& job) {
  if (model::is_ended(job.state)) return has_ended(job, "queued again");
  if (!model::is_active(job.state)) return std::nullopt;
  const model::Attempt& attempt = *job.current_attempt();
  if (is_stopped_by_person(attempt)) {
    return refused(
        fmt::format("job {} is being cancelled and cannot be queued again: submit it "
                    "again",
                    job.id.value));
  }
  if (goes_back(job, attempt)) return std::nullopt;
  return model::StopRequested{{job.id, attempt.number}, EndReason::kRequeuedBy, false, caller.user};
}

// What decides about the start of a job is changed before it starts.
base::Status check_new_start(const Job& job, const model::JobChanged& change) {
  if (!model::is_active(job.state) || (!change.begin && !change.dependencies)) return {};
  const std::string_view field = change.begin ? "begin" : "dependency";
  return refused(fmt::format("{}: job {} is {}, and it is about the start", field, job.id.value,
                             to_string(job.state)),
                 std::string(field));
}

base::Instant start_of(const model::Attempt& attempt) {
  return attempt.started_at.is_set() ? attempt.started_at : attempt.requested_at;
}

std::vector<model::Label> changed_labels(std::vector<model::Label> labels,
                                         const model::UpdateJob& command) {
  std::erase_if(labels, [&](const model::Label& label) {
    return std::ranges::find(command.remove_labels, label.key) != command.remove_labels.end();
  });
  for (const model::Label& wanted : command.labels) {
    std::erase_if(labels, [&](const model::Label& label) { return label.key == wanted.key; });
    labels.push_back(wanted);
  }
  std::ranges::sort(labels, {}, &model::Label::key);
  return labels;
}

// What of the command is new to the job.
model::JobChanged change_of(const Job& job, const model::UpdateJob& command) {
  const model::JobSpec& spec = *job.spec;
  model::JobChanged change;
  change.job = job.id;
  if (command.priority != spec.priority) change.priority = command.priority;
  if (command.time_limit != spec.time_limit) change.time_limit = command.time_limit;
  if (command.name != spec.name) change.name = command.name;
  std::vector<model::Label> labels = changed_labels(spec.labels, command);
  if (labels != spec.labels) change.labels = std::move(labels);
  if (command.begin != spec.begin) change.begin = command.begin;
  if (command.deadline != spec.deadline) change.deadline = command.deadline;
  if (command.expected_time != spec.expected_time) change.expected_time = command.expected_time;
  if (command.preemptible != spec.preemptible) change.preemptible = command.preemptible;
  return change;
}

base::Status check_preemptible(const model::JobSpec& spec, const model::JobChanged& change) {
  if (change.preemptible != true || model::can_begin_anew(spec)) return {};
  return refused("preemptible: what was sent to the job through a pipe is gone when it begins anew",
                 "preemptible");
}

}  // namespace

model::Hold hold_by(const model::Caller& caller, const model::JobSpec& spec) {
  const bool is_of_other = caller.is_administrator && caller.uid != spec.uid;
  return is_of_other ? Hold::kByAdministrator : Hold::kByUser;
}

base::Result<const Job*> Core::find_for(const model::Caller& caller, model::JobId id) const {
  const Job* job = find_job(id);
  if (job == nullptr) {
    return base::fail(ErrorCode::kNotFound, fmt::format("there is no job {}", id.value), "id");
  }
  if (!may_change(caller, *job)) {
    return base::fail(ErrorCode::kPermissionDenied,
                      fmt::format("job {} belongs to another user", id.value), "id");
  }
  return job;
}

Judged Core::judge(const model::Caller& caller, const Job& job, JobAction action) const {
  switch (action) {
    case JobAction::kCancel:
      return judge_stop(caller, job, false);
    case JobAction::kKill:
      return judge_stop(caller, job, true);
    case JobAction::kHold:
      return judge_hold(caller, job);
    case JobAction::kRelease:
      return judge_release(caller, job);
    case JobAction::kRequeue:
    case JobAction::kRequeueAndHold:
      break;
  }
  return judge_requeue(caller, job);
}

// True when it changes, or would change, something.
base::Result<bool> Core::act(const model::Caller& caller, const Job& job, JobAction action,
                             bool dry_run, base::Instant now) {
  const model::JobId id = job.id;
  TRY_ASSIGN(std::optional<model::Event> event, judge(caller, job, action));
  const Hold hold = hold_by(caller, *job.spec);
  const bool holds = action == JobAction::kRequeueAndHold && model::outranks(hold, job.hold);
  if (dry_run || (!event && !holds)) return event || holds;
  // First, so that a job that comes back at once finds itself held.
  if (holds) emit(model::JobHoldChanged{id, hold, caller.user}, now);
  if (event) emit(*std::move(event), now);
  make_eligible_if_due(id, now);
  return true;
}

base::Result<model::CommandReply> Core::act_on_job(const model::Caller& caller,
                                                   const model::ActOnJob& command,
                                                   base::Instant now) {
  if (command.whole_array) return act_on_array(caller, command, now);
  TRY_ASSIGN(const Job* job, find_for(caller, command.job));
  TRY_ASSIGN(const bool changed, act(caller, *job, command.action, false, now));
  return model::CommandReply{command.job, changed};
}

base::Result<model::CommandReply> Core::act_on_jobs(const model::Caller& caller,
                                                    const model::ActOnJobs& command,
                                                    base::Instant now) {
  const auto& user = command.which.user;
  if (user && *user != caller.user && !caller.is_administrator) {
    return base::fail(ErrorCode::kPermissionDenied,
                      fmt::format("user {} may not change jobs of user {}", caller.user, *user),
                      "user");
  }
  // Collected first: a job that ends may leave the map.
  std::vector<model::JobId> chosen;
  state_.jobs.for_each([&](std::uint64_t, const Job& job) {
    if (may_change(caller, job) && selects(command.which, job)) chosen.push_back(job.id);
  });
  model::CommandReply reply;
  reply.changed = false;
  for (const model::JobId id : chosen) {
    const auto done = act(caller, *find_job(id), command.action, command.dry_run, now);
    model::JobOutcome outcome{id, done && *done, std::nullopt};
    if (!done) outcome.refusal = done.error();
    reply.changed = reply.changed || (outcome.changed && !command.dry_run);
    reply.jobs.push_back(std::move(outcome));
  }
  return reply;
}

// A quota of GPU-hours is never passed, whoever gives a running job more time.
base::Status Core::check_longer(const Job& job, base::Duration time_limit) const {
  const base::Duration more = time_limit - job.spec->time_limit;
  if (!model::holds_resources(job) || more <= base::Duration()) return {};
  const auto excess = scheduling::excess_of_hours(
      *state_.policy->organisation, *job.spec, state_.books->quotas,
      scheduling::gpu_time(scheduling::gpu_share_of(job.spec->request), more));
  if (!excess) return {};
  return refused(fmt::format("time_limit_seconds: {}", describe(*excess)), "time_limit_seconds");
}

// What runs on GPUs of others stays so that it can be stopped for them.
base::Status Core::check_still_stoppable(const Job& job, const model::JobChanged& change) const {
  if (!model::holds_resources(job) || !state_.books->lending.is_active()) return {};
  model::JobSpec then = *job.spec;
  if (change.priority) then.priority = *change.priority;
  if (change.preemptible) then.preemptible = *change.preemptible;
  const model::Policy& policy = *state_.policy;
  if (!model::may_borrow(*job.spec, policy) || model::may_borrow(then, policy)) return {};
  scheduling::PoolBalance balance = state_.books->lending.balance();
  scheduling::PoolAsk ask = scheduling::pool_ask(balance.guarantees(), policy, *job.spec);
  const std::ptrdiff_t held = std::ranges::count_if(
      job.attempts, [](const model::Attempt& each) { return model::holds_resources(each.state); });
  for (std::ptrdiff_t i = 0; i < held; ++i) balance.remove(ask);
  ask.may_borrow = false;
  ask.gpus = ask.gpus * held;
  const auto excess = balance.excess_of(ask);
  if (!excess) return {};
  const std::string_view field = change.preemptible ? "preemptible" : "priority";
  return refused(
      fmt::format("{}: job {} runs on GPUs guaranteed to others and could not be stopped "
                  "for them any more: {}",
                  field, job.id.value, describe(*excess)),
      std::string(field));
}

base::Status Core::check_update(const model::Caller& caller, const Job& job,
                                const model::JobChanged& change, base::Instant now) const {
  if (model::is_ended(job.state)) return has_ended(job, "changed");
  TRY(check_new_start(job, change));
  TRY(check_growth(caller, job, change));
  if (change.labels && change.labels->size() > model::kMostLabels) {
    return base::invalid("labels",
                         fmt::format("labels: job {} would have {}, the most is {}", job.id.value,
                                     change.labels->size(), model::kMostLabels));
  }
  const bool is_named_by = model::names_job(job.spec->output) || model::names_job(job.spec->error);
  if (change.name && is_named_by && !job.attempts.empty()) {
    return refused(fmt::format("name: the output files of job {} are named by it (%x), and it has "
                               "started",
                               job.id.value),
                   "name");
  }
  if (change.priority) TRY(check_priority(caller, *change.priority));
  TRY(check_expected(change.expected_time, change.time_limit.value_or(job.spec->time_limit)));
  TRY(check_preemptible(*job.spec, change));
  TRY(check_still_stoppable(job, change));
  if (change.begin || change.deadline || change.time_limit) {
    model::JobSpec then = *job.spec;
    if (change.begin) then.begin = *change.begin;
    if (change.deadline) then.deadline = *change.deadline;
    if (change.time_limit) then.time_limit = *change.time_limit;
    const base::Instant earliest =
        model::is_active(job.state) ? start_of(*job.current_attempt()) : now;
    TRY(check_times(then, earliest));
    const bool is_active = model::is_active(job.state);
    TRY(check_window_times(
        then, is_active ? std::max(earliest, job.current_attempt()->requested_at) : now));
  }
  if (change.time_limit) TRY(check_longer(job, *change.time_limit));
  if (change.time_limit) TRY(check_no_window_passed(job, *change.time_limit));
  if (!change.time_limit || caller.is_administrator) return {};
  if (model::is_active(job.state) && *change.time_limit > job.spec->time_limit) {
    return base::fail(ErrorCode::kPermissionDenied,
                      fmt::format("time_limit_seconds: job {} is {}; only an administrator can "
                                  "give it more time",
                                  job.id.value, to_string(job.state)),
                      "time_limit_seconds");
  }
  TRY(check_time_limit(*change.time_limit));
  return check_speeds(job.spec->request, *change.time_limit);
}

base::Result<model::CommandReply> Core::update(const model::Caller& caller,
                                               const model::UpdateJob& command, base::Instant now) {
  if (command.whole_array) return update_array(caller, command, now);
  TRY_ASSIGN(const bool changed, update_one(caller, command, now));
  return model::CommandReply{command.job, changed};
}

// True when it changed something.
base::Result<bool> Core::update_one(const model::Caller& caller, const model::UpdateJob& command,
                                    base::Instant now) {
  TRY_ASSIGN(const Job* job, find_for(caller, command.job));
  model::JobChanged change = change_of(*job, command);
  if (command.dependencies && *command.dependencies != job->spec->dependencies) {
    TRY_ASSIGN(change.dependencies,
               judge_dependencies(caller, *command.dependencies, command.ended, job->id));
    // The job is there and may have waited long: a mistaken word does not end it.
    if (!change.dependencies->failure.empty()) {
      return refused("dependency: " + change.dependencies->failure, "dependency");
    }
  }
  TRY(check_update(caller, *job, change, now));
  const bool changes = change.priority || change.time_limit || change.name || change.labels ||
                       change.begin || change.deadline || change.dependencies ||
                       change.expected_time || change.preemptible;
  if (changes) {
    change.by = caller.user;
    emit(std::move(change), now);
  }
  return changes;
}

}  // namespace gpu_platform::controller
