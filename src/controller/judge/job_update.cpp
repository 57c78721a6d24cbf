#include "controller/judge/job_update.h"

#include <algorithm>
#include <utility>

#include "controller/judge/admission.h"
#include "controller/judge/dependencies.h"
#include "controller/judge/job_actions.h"
#include "controller/judge/job_limits.h"
#include "controller/judge/reservations.h"
#include "model/output_pattern.h"

namespace gpu_platform::controller {

using base::ErrorCode;
using model::Job;
using model::JobSpec;

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
  const bool has_begin = change.to.get(&JobSpec::begin) != nullptr;
  if (!model::is_active(job.state) || (!has_begin && !change.dependencies)) return {};
  const std::string_view field = has_begin ? "begin" : "dependency";
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
  const std::vector<model::Label>* const added = command.to.get(&JobSpec::labels);
  if (added == nullptr) return labels;
  for (const model::Label& wanted : *added) {
    std::erase_if(labels, [&](const model::Label& label) { return label.key == wanted.key; });
    labels.push_back(wanted);
  }
  std::ranges::sort(labels, {}, &model::Label::key);
  return labels;
}

// What of the command is new to the job.
model::JobChanged change_of(const Job& job, const model::UpdateJob& command) {
  model::JobChanged change;
  change.job = job.id;
  change.to = command.to;
  change.to.set(&JobSpec::labels, changed_labels(job.spec->labels, command));
  change.to.drop_what_is_so(*job.spec);
  return change;
}

base::Status check_preemptible(const JobSpec& spec, const model::JobChanged& change) {
  const auto* preemptible = change.to.get(&JobSpec::preemptible);
  if (preemptible == nullptr || *preemptible != true || model::can_begin_anew(spec)) return {};
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
  const JobSpec then = change.to.applied_to(*job.spec);
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
  const std::string_view field =
      change.to.get(&JobSpec::preemptible) != nullptr ? "preemptible" : "priority";
  return refused(
      fmt::format("{}: job {} runs on GPUs guaranteed to others and could not be stopped "
                  "for them any more: {}",
                  field, job.id.value, describe(*excess)),
      std::string(field));
}

base::Status check_new_limit(const State& state, const model::Caller& caller, const Job& job,
                             base::Duration time_limit) {
  TRY(check_longer(state, job, time_limit));
  TRY(check_no_reservation_passed(state, job, time_limit));
  if (caller.is_administrator) return {};
  if (model::is_active(job.state) && time_limit > job.spec->time_limit) {
    return base::fail(ErrorCode::kPermissionDenied,
                      fmt::format("time_limit_seconds: job {} is {}; only an administrator can "
                                  "give it more time",
                                  job.id.value, to_string(job.state)),
                      "time_limit_seconds");
  }
  TRY(check_time_limit(state, time_limit));
  return check_speeds(state, job.spec->request, time_limit);
}

base::Status check_update(const State& state, const model::Caller& caller, const Job& job,
                          const model::JobChanged& change, base::Instant now) {
  if (model::is_ended(job.state)) return has_ended(job, "changed");
  TRY(check_new_start(job, change));
  TRY(check_growth(state, caller, job, change));
  const JobSpec then = change.to.applied_to(*job.spec);
  if (then.labels.size() > model::kMaxLabels) {
    return base::invalid("labels",
                         fmt::format("labels: job {} would have {}, the most is {}", job.id.value,
                                     then.labels.size(), model::kMaxLabels));
  }
  const bool is_named_by = model::names_job(job.spec->output) || model::names_job(job.spec->error);
  if (change.to.get(&JobSpec::name) && is_named_by && !job.attempts.empty()) {
    return refused(fmt::format("name: the output files of job {} are named by it (%x), and it has "
                               "started",
                               job.id.value),
                   "name");
  }
  if (change.to.get(&JobSpec::priority)) TRY(check_priority(state, caller, then.priority));
  if (change.to.get(&JobSpec::expected_time)) {
    TRY(check_expected(then.expected_time, then.time_limit));
  }
  TRY(check_preemptible(*job.spec, change));
  TRY(check_still_stoppable(state, job, change));
  const bool has_limit = change.to.get(&JobSpec::time_limit) != nullptr;
  if (change.to.get(&JobSpec::begin) || change.to.get(&JobSpec::deadline) || has_limit) {
    const bool is_active = model::is_active(job.state);
    const base::Instant earliest = is_active ? start_of(*job.current_attempt()) : now;
    TRY(check_times(state, then, earliest));
    TRY(check_reservation_times(
        state, then, is_active ? std::max(earliest, job.current_attempt()->requested_at) : now));
  }
  return has_limit ? check_new_limit(state, caller, job, then.time_limit) : base::Status();
}

}  // namespace

base::Result<std::optional<model::JobChanged>> judge_update(const State& state,
                                                            const model::Caller& caller,
                                                            const model::UpdateJob& command,
                                                            base::Instant now) {
  TRY_ASSIGN(const Job* job, find_for(state, caller, command.job));
  model::JobChanged change = change_of(*job, command);
  if (const auto* asked = change.to.get(&JobSpec::dependencies)) {
    TRY_ASSIGN(change.dependencies,
               judge_dependencies(state, caller, *asked, command.ended, job->id));
    // The job is there and may have waited long: a mistaken word does not end it.
    if (!change.dependencies->failure.empty()) {
      return refused("dependency: " + change.dependencies->failure, "dependency");
    }
  }
  TRY(check_update(state, caller, *job, change, now));
  if (change.to.empty()) return std::nullopt;
  change.by = caller.user;
  return change;
}

}  // namespace gpu_platform::controller
