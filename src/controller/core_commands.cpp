#include <algorithm>
#include <utility>

#include "controller/core.h"
#include "scheduling/explain/feasibility.h"

// Commands of people, judged against the state.

namespace gpu_platform::controller {

using base::ErrorCode;
using model::Job;
using model::JobState;

namespace {

// How the submission would stand in the queue. No limit of its array keeps the first member back.
std::shared_ptr<const Job> as_accepted(const model::JobSubmitted& event, base::Instant now) {
  Job job;
  job.spec = event.spec;
  job.submitted_at = now;
  job.eligible_at = event.spec->begin;
  job.hold = event.hold;
  job.waits_for = event.waits_for;
  job.dependency_failure = event.dependency_failure;
  const bool is_gated =
      !job.waits_for.empty() || !job.dependency_failure.empty() || job.eligible_at > now;
  job.state = job.hold != model::Hold::kNone ? JobState::kHeld
              : is_gated                     ? JobState::kPending
                                             : JobState::kQueued;
  return std::make_shared<const Job>(std::move(job));
}

// The owner's name need not be written twice.
model::Origin submitter(const model::Caller& caller, const model::JobSpec& spec) {
  model::Origin origin = origin_of(caller);
  if (origin.uid == spec.uid && origin.user == spec.user) {
    origin.user.clear();
    origin.uid = 0;
  }
  return origin;
}

}  // namespace

base::Result<model::CommandReply> Core::command(const model::Command& command, base::Instant now,
                                                store::Room room) {
  const std::size_t events_before = batch_.events.size();
  const std::size_t ended_before = batch_.ended_jobs.size();
  auto reply = carry_out(command, now, room);
  audit_changes(command, events_before, ended_before, now);
  return reply;
}

base::Result<model::CommandReply> Core::carry_out(const model::Command& command, base::Instant now,
                                                  store::Room room) {
  if (const auto* request = std::get_if<model::SubmitJob>(&command.body)) {
    return submit(command.caller, *request, now, room);
  }
  if (const auto* change = std::get_if<model::ChangeGpus>(&command.body)) {
    return change_gpus(command.caller, *change, now);
  }
  if (const auto* update_one = std::get_if<model::UpdateJob>(&command.body)) {
    return update(command.caller, *update_one, now);
  }
  if (const auto* many = std::get_if<model::ActOnJobs>(&command.body)) {
    return act_on_jobs(command.caller, *many, now);
  }
  if (const auto* made = std::get_if<model::MakeReservation>(&command.body)) {
    return make_reservation(command.caller, *made, now, room);
  }
  if (const auto* cancelled = std::get_if<model::CancelReservation>(&command.body)) {
    return cancel_reservation(command.caller, *cancelled, now);
  }
  if (const auto* calls = std::get_if<model::RecordCalls>(&command.body)) {
    return record_calls(*calls, now, room);
  }
  return act_on_job(command.caller, std::get<model::ActOnJob>(command.body), now);
}

base::Result<model::CommandReply> Core::submit(const model::Caller& caller,
                                               const model::SubmitJob& command, base::Instant now,
                                               store::Room room) {
  if (!command.spec.request_id.empty() && !command.dry_run) {
    const auto entry = state_.requests.find({command.spec.user, command.spec.request_id});
    const bool is_known = entry != state_.requests.end();
    const bool is_over = is_known && entry->second.expires.is_set() && entry->second.expires <= now;
    if (is_known && !is_over) return model::CommandReply{entry->second.job, false};
  }
  if (caller.uid != command.spec.uid && !caller.is_administrator) {
    return base::fail(
        ErrorCode::kPermissionDenied,
        fmt::format("user {} may not submit jobs of user {}", caller.user, command.spec.user),
        "user");
  }
  if (room != store::Room::kAmple) {
    return base::fail(ErrorCode::kResourceExhausted,
                      "the disk of the data directory is full: no new jobs are accepted until "
                      "space is freed (running jobs go on and their endings are recorded)");
  }
  TRY(check_submission(caller, command.spec, now));
  TRY_ASSIGN(model::NewDependencies dependencies,
             judge_dependencies(caller, command.spec.dependencies, command.ended, {}));

  TRY_ASSIGN(std::string team, model::team_for(*state_.policy->organisation, command.spec.user,
                                               command.spec.team, caller.is_administrator));

  const auto spec = std::make_shared<model::JobSpec>(command.spec);
  spec->team = std::move(team);
  if (spec->time_limit == base::Duration()) spec->time_limit = state_.policy->max_time_limit;
  if (!spec->idle_timeout && spec->terminal) spec->idle_timeout = state_.policy->idle_timeout;
  TRY(enter_window(*spec, now));
  TRY(check_expected(spec->expected_time, spec->time_limit));
  TRY(check_quota(*spec));
  const model::JobId id(state_.last_job_id + 1);
  model::JobSubmitted event{id,
                            spec,
                            command.hold ? hold_by(caller, *spec) : model::Hold::kNone,
                            std::move(dependencies.waits_for),
                            std::move(dependencies.failure),
                            submitter(caller, *spec)};
  if (command.dry_run) return model::CommandReply{{}, false, {}, {}, as_accepted(event, now)};
  // The job's number names its environment: unique, and no secret itself.
  spec->environment_ref =
      command.environment.empty() ? std::string() : fmt::format("job-{}", id.value);
  if (!command.environment.empty()) {
    batch_.new_environments.push_back({spec->environment_ref, command.environment});
  }
  emit(std::move(event), now);
  return model::CommandReply{id, true};
}

base::Status Core::check_priority(const model::Caller& caller,
                                  const model::Priority& priority) const {
  const model::PriorityClass highest = state_.policy->highest_user_priority;
  if (caller.is_administrator || priority.priority_class >= highest) return {};
  return base::fail(ErrorCode::kPermissionDenied,
                    fmt::format("priority: {} is for administrators here; the highest you may ask "
                                "for is {} (policies.highest_user_priority)",
                                to_string(priority.priority_class), to_string(highest)),
                    "priority");
}

base::Status Core::check_time_limit(base::Duration time_limit) const {
  const base::Duration longest = state_.policy->max_time_limit;
  if (time_limit <= longest) return {};
  return base::fail(
      ErrorCode::kFailedPrecondition,
      fmt::format("time_limit_seconds: {} asked, the longest allowed is {}",
                  time_limit.value() / 1'000'000'000, longest.value() / 1'000'000'000),
      "time_limit_seconds");
}

base::Status Core::check_expected(std::optional<base::Duration> expected,
                                  base::Duration time_limit) {
  if (!expected || *expected <= time_limit) return {};
  return base::invalid(
      "expected_time_seconds",
      fmt::format("expected_time_seconds: {} expected, and the time limit is {}; "
                  "say less, or raise the time limit",
                  expected->value() / 1'000'000'000, time_limit.value() / 1'000'000'000));
}

base::Status Core::check_array(const model::JobSpec& spec) const {
  if (!spec.array) return {};
  const std::uint64_t members = member_count(*spec.array);
  if (members <= state_.policy->max_array_size) return {};
  return base::fail(ErrorCode::kFailedPrecondition,
                    fmt::format("array: {} members asked, the most is {} (policies.max_array_size)",
                                members, state_.policy->max_array_size),
                    "array");
}

// Where it is slower it takes longer, and that too must be allowed.
base::Status Core::check_speeds(const model::ResourceRequest& request,
                                base::Duration time_limit) const {
  const base::Duration longest = state_.policy->max_time_limit;
  const base::Duration asked = time_limit == base::Duration() ? longest : time_limit;
  const base::Duration needed = model::longest_limit(request, asked);
  if (needed <= longest) return {};
  return base::fail(
      ErrorCode::kFailedPrecondition,
      fmt::format("time_limit_seconds: {} at the first type's speed come to {} on the "
                  "slowest type of gpu_types, the longest allowed is {}",
                  asked.value() / 1'000'000'000, needed.value() / 1'000'000'000,
                  longest.value() / 1'000'000'000),
      "time_limit_seconds");
}

base::Status Core::check_submission(const model::Caller& caller, const model::JobSpec& spec,
                                    base::Instant now) {
  const model::Policy& policy = *state_.policy;
  if (spec.uid == 0 && !policy.allow_root_jobs) {
    return base::fail(ErrorCode::kPermissionDenied,
                      "jobs of root are refused here (execution.root_jobs: refuse); submit as "
                      "another user",
                      "user");
  }
  TRY(check_priority(caller, spec.priority));
  TRY(check_time_limit(spec.time_limit));
  TRY(check_speeds(spec.request, spec.time_limit));
  if (!spec.notify.empty() && !policy.can_notify) {
    return base::fail(ErrorCode::kFailedPrecondition,
                      "notify: this site has no notification command (execution.notify_command)",
                      "notify");
  }
  TRY(check_times(spec, now));
  TRY(check_array(spec));
  TRY(check_room(caller, spec));
  return check_feasible(spec.request);
}

base::Status Core::check_quota(const model::JobSpec& spec) const {
  const model::Organisation& organisation = *state_.policy->organisation;
  // With nothing else of anybody's there: what passes a limit by itself never runs.
  if (const auto alone = scheduling::excess_if_started(organisation, spec, {})) {
    return base::fail(ErrorCode::kFailedPrecondition,
                      fmt::format("this job could never run: {}", describe(*alone)),
                      alone->kind == model::QuotaKind::kGpuHours ? "time_limit_seconds" : "gpus");
  }
  const scheduling::Lending nobody_runs(
      scheduling::guarantees_of(organisation, state_.books->cluster.totals().gpus()));
  if (nobody_runs.is_active()) {
    const scheduling::PoolBalance& balance = nobody_runs.balance();
    const auto alone = balance.excess_of(pool_ask(balance.guarantees(), *state_.policy, spec));
    if (alone && alone->kind == model::QuotaKind::kBorrowLimit) {
      return base::fail(ErrorCode::kFailedPrecondition,
                        fmt::format("this job could never run: {}", describe(*alone)), "gpus");
    }
  }
  if (const auto full = scheduling::excess_if_queued(organisation, spec, state_.books->quotas)) {
    return base::fail(ErrorCode::kResourceExhausted, describe(*full),
                      std::string(to_string(full->holder)));
  }
  return {};
}

// Requests come in few kinds and nodes change rarely: each kind is worked out once per inventory.
base::Status Core::check_feasible(const model::ResourceRequest& request) {
  for (const auto& [known, answer] : feasible_) {
    if (known == request) return answer;
  }
  constexpr std::size_t kRemembered = 64;
  if (feasible_.size() == kRemembered) feasible_.erase(feasible_.begin());
  feasible_.emplace_back(request, judge_feasible(request));
  return feasible_.back().second;
}

// Of a gang first one part, which has more to say of what is wrong with it.
base::Status Core::judge_feasible(const model::ResourceRequest& request) {
  if (!request.cross_node) TRY(scheduling::could_ever_fit(state_.nodes, request));
  if (!model::is_gang(request)) return {};
  if (!empty_) empty_.emplace(state_.nodes);
  return empty_->could_ever_fit(request);
}

}  // namespace gpu_platform::controller
