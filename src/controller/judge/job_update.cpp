#include "controller/judge/job_update.h"

#include <algorithm>
#include <utility>

#include "controller/judge/admission.h"
#include "controller/judge/dependencies.h"
#include "controller/judge/job_actions.h"
#include "controller/judge/job_limits.h"
#include "controller/judge/windows.h"
#include "model/output_pattern.h"

namespace gpu_platform::controller {

using base::ErrorCode;
using model::Job;

namespace {

std::unexpected<base::Error> refused(std::string message, std::string field = "id") {
  return base::fail(ErrorCode::kFailedPrecondition, std::move(message), std::move(field));
}

std::unexpected<base::Error> has_ended(const Job& job, std::string_view what) {
  return refused(fmt::format("job {} is {} and cannot be {}: submit it again", job.id.value,
                             to_string(job.state), what));
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

// A quota of GPU-hours is never passed, whoever gives a running job more time.
base::Status check_longer(const State& state, const Job& job, base::Duration time_limit) {
  const base::Duration more = time_limit - job.spec->time_limit;
  if (!model::holds_resources(job) || more <= base::Duration()) return {};
  const auto excess = scheduling::excess_of_hours(
      *state.policy->organisation, *job.spec, state.books->quotas,
      scheduling::gpu_time(scheduling::gpu_share_of(job.spec->request), more));
  if (!excess) return {};
  return refused(fmt::format("time_limit_seconds: {}", describe(*excess)), "time_limit_seconds");
}

// What runs on GPUs of others stays so that it can be stopped for them.
base::Status check_still_stoppable(const State& state, const Job& job,
                                   const model::JobChanged& change) {
  if (!model::holds_resources(job) || !state.books->lending.is_active()) return {};
  model::JobSpec then = *job.spec;
  if (change.priority) then.priority = *change.priority;
  if (change.preemptible) then.preemptible = *change.preemptible;
  const model::Policy& policy = *state.policy;
  if (!model::may_borrow(*job.spec, policy) || model::may_borrow(then, policy)) return {};
  scheduling::PoolBalance balance = state.books->lending.balance();
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

base::Status check_update(const State& state, const model::Caller& caller, const Job& job,
                          const model::JobChanged& change, base::Instant now) {
  if (model::is_ended(job.state)) return has_ended(job, "changed");
  TRY(check_new_start(job, change));
  TRY(check_growth(state, caller, job, change));
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
  if (change.priority) TRY(check_priority(state, caller, *change.priority));
  TRY(check_expected(change.expected_time, change.time_limit.value_or(job.spec->time_limit)));
  TRY(check_preemptible(*job.spec, change));
  TRY(check_still_stoppable(state, job, change));
  if (change.begin || change.deadline || change.time_limit) {
    model::JobSpec then = *job.spec;
    if (change.begin) then.begin = *change.begin;
    if (change.deadline) then.deadline = *change.deadline;
    if (change.time_limit) then.time_limit = *change.time_limit;
    const base::Instant earliest =
        model::is_active(job.state) ? start_of(*job.current_attempt()) : now;
    TRY(check_times(state, then, earliest));
    const bool is_active = model::is_active(job.state);
    TRY(check_window_times(
        state, then, is_active ? std::max(earliest, job.current_attempt()->requested_at) : now));
  }
  if (change.time_limit) TRY(check_longer(state, job, *change.time_limit));
  if (change.time_limit) TRY(check_no_window_passed(state, job, *change.time_limit));
  if (!change.time_limit || caller.is_administrator) return {};
  if (model::is_active(job.state) && *change.time_limit > job.spec->time_limit) {
    return base::fail(ErrorCode::kPermissionDenied,
                      fmt::format("time_limit_seconds: job {} is {}; only an administrator can "
                                  "give it more time",
                                  job.id.value, to_string(job.state)),
                      "time_limit_seconds");
  }
  TRY(check_time_limit(state, *change.time_limit));
  return check_speeds(state, job.spec->request, *change.time_limit);
}

}  // namespace

base::Result<std::optional<model::JobChanged>> judge_update(const State& state,
                                                            const model::Caller& caller,
                                                            const model::UpdateJob& command,
                                                            base::Instant now) {
  TRY_ASSIGN(const Job* job, find_for(state, caller, command.job));
  model::JobChanged change = change_of(*job, command);
  if (command.dependencies && *command.dependencies != job->spec->dependencies) {
    TRY_ASSIGN(change.dependencies,
               judge_dependencies(state, caller, *command.dependencies, command.ended, job->id));
    // The job is there and may have waited long: a mistaken word does not end it.
    if (!change.dependencies->failure.empty()) {
      return refused("dependency: " + change.dependencies->failure, "dependency");
    }
  }
  TRY(check_update(state, caller, *job, change, now));
  const bool changes = change.priority || change.time_limit || change.name || change.labels ||
                       change.begin || change.deadline || change.dependencies ||
                       change.expected_time || change.preemptible;
  if (!changes) return std::nullopt;
  change.by = caller.user;
  return change;
}

}  // namespace gpu_platform::controller
