#include "controller/judge/job_actions.h"

#include <utility>

#include "controller/judge/refusals.h"
#include "model/access.h"
#include "model/job_signal.h"
#include "model/job_spec.h"
#include "model/node_lookup.h"

namespace gpu_platform::controller {

using base::ErrorCode;
using model::EndReason;
using model::Hold;
using model::Job;
using model::JobAction;
using model::JobState;
using Judged = base::Result<std::optional<model::Event>>;

namespace {

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
        fmt::format("job {} is {}; only a waiting job can be held: 'jobs requeue "
                    "--hold' stops it and holds it",
                    name_of(job), to_string(job.state)));
  }
  const Hold hold = hold_by(caller, *job.spec);
  if (!model::outranks(hold, job.hold)) return std::nullopt;
  return model::JobHoldChanged{job.id, hold, caller.user};
}

Judged judge_release(const model::Caller& caller, const Job& job) {
  if (model::is_ended(job.state)) return has_ended(job, "released");
  if (job.hold == Hold::kNone) return std::nullopt;
  if (job.hold == Hold::kByAdministrator && !model::manages(caller, *job.spec)) {
    return base::fail(
        ErrorCode::kPermissionDenied,
        fmt::format("job {} is held by an operator; ask an operator, an admin or a coordinator of "
                    "its team to release it",
                    name_of(job)),
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
        fmt::format("job {} is being cancelled and cannot be queued again; submit it again with "
                    "'jobs rerun'",
                    name_of(job)));
  }
  if (goes_back(job, attempt)) return std::nullopt;
  return model::StopRequested{{job.id, attempt.number}, EndReason::kRequeuedBy, false, caller.user};
}

Judged judge_one(const model::Caller& caller, const Job& job, JobAction action) {
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

}  // namespace

model::Hold hold_by(const model::Caller& caller, const model::JobSpec& spec) {
  return caller.uid == spec.uid ? Hold::kByUser : Hold::kByAdministrator;
}

base::Result<const Job*> find_for(const State& state, const model::Caller& caller,
                                  model::JobId id) {
  const Job* job = find_job(state, id);
  if (job == nullptr) {
    return base::fail(ErrorCode::kNotFound, fmt::format("there is no job {}", id.value), "id");
  }
  TRY(model::check_may_touch(caller, id, *job->spec));
  return job;
}

base::Result<Events> judge_action(const model::Caller& caller, const Job& job, JobAction action) {
  TRY_ASSIGN(std::optional<model::Event> event, judge_one(caller, job, action));
  Events events;
  const Hold hold = hold_by(caller, *job.spec);
  // First, so that a job that comes back at once finds itself held.
  if (action == JobAction::kRequeueAndHold && model::outranks(hold, job.hold)) {
    events.push_back(model::JobHoldChanged{job.id, hold, caller.user});
  }
  if (event) events.push_back(*std::move(event));
  return events;
}

base::Result<model::SignalRequested> judge_signal(const State& state, const model::Caller& caller,
                                                  const Job& job, std::uint8_t signal) {
  if (!model::is_job_signal(signal)) return base::invalid("signal", "signal: may not be sent");
  const model::Attempt* attempt = job.current_attempt();
  const bool has_processes =
      (job.state == JobState::kRunning || job.state == JobState::kStopping) &&
      attempt->started_at.is_set() && !attempt->ended_at.is_set();
  const auto engine =
      has_processes ? model::engine_of(state.nodes, job, attempt->number) : std::nullopt;
  if (engine && !model::traits_of(*engine).delivers_signals) {
    return refused(
        fmt::format("job {} runs {}, which delivers no signals; 'jobs cancel' "
                    "ends it with SIGTERM, 'jobs exec' runs a command in it",
                    model::name_of(job), model::traits_of(*engine).place));
  }
  if (has_processes) return model::SignalRequested{{job.id, attempt->number}, signal, caller.user};
  return refused(fmt::format("job {} is {}: only a running job has processes to send a signal to",
                             model::name_of(job), to_string(job.state)));
}

base::Result<bool> would_change(const model::Caller& caller, const Job& job, JobAction action) {
  TRY_ASSIGN(const Events events, judge_action(caller, job, action));
  return !events.empty();
}

base::Result<std::vector<model::JobId>> members_for(const State& state, const model::Caller& caller,
                                                    model::JobId array_id) {
  const model::JobArray* array = state.arrays.find(array_id.value);
  if (array == nullptr) {
    return base::fail(ErrorCode::kNotFound, fmt::format("there is no job {}", array_id.value),
                      "id");
  }
  std::vector<model::JobId> members;
  for (std::uint64_t position = 0; position < array->size; ++position) {
    const model::JobId id(array_id.value + position);
    if (find_job(state, id) == nullptr) continue;
    TRY(find_for(state, caller, id));
    members.push_back(id);
  }
  return members;
}

base::Result<std::vector<model::JobId>> choose_jobs(const State& state, const model::Caller& caller,
                                                    const model::JobSelection& which) {
  const auto& user = which.user;
  if (user && *user != caller.user && caller.reach == model::Reach::kOwn) {
    return base::fail(ErrorCode::kPermissionDenied,
                      fmt::format("user {} may not change jobs of user {}", caller.user, *user),
                      "user");
  }
  std::vector<model::JobId> chosen;
  state.jobs.for_each([&](std::uint64_t, const Job& job) {
    if (model::may_touch(caller, *job.spec) && selects(which, job)) chosen.push_back(job.id);
  });
  return chosen;
}

}  // namespace gpu_platform::controller
