#include "controller/judge/submission.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "controller/job_budget.h"
#include "controller/judge/admission.h"
#include "controller/judge/dependencies.h"
#include "controller/judge/engines.h"
#include "controller/judge/job_actions.h"
#include "controller/judge/job_limits.h"
#include "controller/judge/reserved_jobs.h"
#include "model/access.h"
#include "model/job_spec.h"

namespace gpu_platform::controller {

using base::ErrorCode;
using model::Job;
using model::JobState;

namespace {

// Returns the submission as it would stand in the queue. No limit of its array keeps the first
// member back.
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

// The owner's name is not written twice.
model::Origin submitter(const model::Caller& caller, const model::JobSpec& spec) {
  model::Origin origin = origin_of(caller);
  if (origin.uid == spec.uid && origin.user == spec.user) {
    origin.user.clear();
    origin.uid = 0;
  }
  return origin;
}

base::Status check_array(const State& state, const model::JobSpec& spec) {
  if (!spec.array) return {};
  const std::uint64_t members = member_count(*spec.array);
  if (members <= state.policy->max_array_size) return {};
  return base::fail(ErrorCode::kFailedPrecondition,
                    fmt::format("array: {} members exceed the limit of {} "
                                "(policies.max_array_size); submit several arrays",
                                members, state.policy->max_array_size),
                    "array");
}

// An address alone asks for nothing: as with sbatch, only events do.
base::Status check_notification(const model::Policy& policy, const model::JobSpec& spec) {
  const bool has_address = !spec.notify_to.empty();
  if (spec.notify.empty() && !has_address) return {};
  if (!policy.can_notify) {
    const std::string_view field = spec.notify.empty() ? "notify_to" : "notify";
    return base::fail(
        ErrorCode::kFailedPrecondition,
        fmt::format("{}: this site has no notification command (execution.notify_command)", field),
        std::string(field));
  }
  if (!spec.notify.empty()) return {};
  return base::invalid("notify_to",
                       "notify_to: nothing is sent to an address without events; give notify, too, "
                       "as in --notify end,fail");
}

base::Status check_submission(const State& state, Feasibility& feasibility,
                              const model::Caller& caller, const model::JobSpec& spec,
                              base::Instant now, TimeLimitFrom limit_from) {
  const model::Policy& policy = *state.policy;
  if (spec.uid == 0 && !policy.allow_root_jobs) {
    return base::fail(ErrorCode::kPermissionDenied,
                      "jobs of root are refused here (execution.root_jobs: refuse); submit as "
                      "another user",
                      "user");
  }
  TRY(check_priority(state, caller, spec.priority));
  TRY(check_time_limit(state, spec.time_limit));
  TRY(check_speeds(state, spec.request, spec.time_limit));
  TRY(check_notification(policy, spec));
  TRY(check_times(spec, now, limit_from));
  TRY(check_array(state, spec));
  TRY(check_queue_limits(state, caller, spec));
  return feasibility.check(state.nodes, spec.request, state.policy->sharing);
}

base::Status check_quota(const State& state, const model::JobSpec& spec) {
  TRY(check_could_run(state, spec));
  const model::Organisation& organisation = *state.policy->organisation;
  if (const auto full = scheduling::excess_if_queued(organisation, spec, state.books->quotas)) {
    return base::fail(ErrorCode::kResourceExhausted, describe(*full),
                      std::string(to_string(full->holder)));
  }
  return {};
}

}  // namespace

base::Result<Submission> judge_submission(const State& state, Feasibility& feasibility,
                                          const model::Caller& caller,
                                          const model::SubmitJob& command, base::Instant now,
                                          store::Headroom headroom) {
  if (!command.spec.request_id.empty() && !command.dry_run) {
    const auto entry = state.requests.find({command.spec.user, command.spec.request_id});
    const bool is_known = entry != state.requests.end();
    const bool is_over = is_known && entry->second.expires.is_set() && entry->second.expires <= now;
    if (is_known && !is_over) return Submission{{entry->second.job, false}, {}};
  }
  const bool is_for_root = command.spec.uid == 0;
  if (caller.uid != command.spec.uid && (is_for_root || caller.reach != model::Reach::kAll)) {
    return base::fail(
        ErrorCode::kPermissionDenied,
        fmt::format("user {} may not submit jobs of user {}", caller.user, command.spec.user),
        "user");
  }
  if (headroom != store::Headroom::kAmple) {
    return base::fail(ErrorCode::kResourceExhausted,
                      "the disk of the data directory is full: no new jobs are accepted until "
                      "space is freed (running jobs go on and their endings are recorded)");
  }
  TRY_ASSIGN(std::string team,
             model::team_for(*state.policy->organisation, command.spec.user, command.spec.team,
                             model::has(caller, model::Right::kChargeAnyTeam)));
  const auto spec = std::make_shared<model::JobSpec>(command.spec);
  spec->team = std::move(team);
  TimeLimitFrom limit_from = TimeLimitFrom::kJob;
  if (spec->time_limit == base::Duration()) {
    limit_from = TimeLimitFrom::kDefault;
    model::TeamRules rules = model::team_rules(*state.policy, spec->team);
    spec->time_limit = rules.default_time_limit;
    spec->time_limit_default_of = std::move(rules.default_time_limit_of);
  }
  TRY_ASSIGN(spec->request.engines, engines_for(*state.policy, *spec, {command.refuses_network}));
  if (model::is_part(spec->request)) spec->request.tenant = {spec->uid, spec->team};
  TRY(check_submission(state, feasibility, caller, *spec, now, limit_from));
  TRY_ASSIGN(model::NewDependencies dependencies,
             judge_dependencies(state, caller, {*spec, {}, {}}, spec->dependencies, command.ended));

  spec->request.reserve_percent = state.policy->cpu_job_reserve_percent;
  if (!spec->idle_timeout && spec->terminal) spec->idle_timeout = state.policy->idle_timeout;
  TRY(enter_reservation(state, *spec, now));
  TRY(check_expected(spec->expected_time, spec->time_limit));
  TRY(check_quota(state, *spec));
  TRY(check_job_budget(state, *spec, {}, now));
  const model::JobId id(state.last_job_id + 1);
  model::JobSubmitted event{id,
                            spec,
                            command.hold ? hold_by(caller, *spec) : model::Hold::kNone,
                            std::move(dependencies.waits_for),
                            std::move(dependencies.failure),
                            submitter(caller, *spec)};
  if (command.dry_run) return Submission{{{}, false, {}, {}, as_accepted(event, now)}, {}};
  // The job's number names its environment: unique, and no secret itself.
  spec->environment_ref =
      command.environment.empty() ? std::string() : fmt::format("job-{}", id.value);
  return Submission{{id, true}, std::move(event)};
}

}  // namespace gpu_platform::controller
