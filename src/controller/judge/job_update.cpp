#include "controller/judge/job_update.h"

#include <algorithm>
#include <utility>

#include "controller/job_budget.h"
#include "controller/judge/admission.h"
#include "controller/judge/dependencies.h"
#include "controller/judge/engines.h"
#include "controller/judge/job_actions.h"
#include "controller/judge/job_limits.h"
#include "controller/judge/refusals.h"
#include "controller/judge/reserved_jobs.h"
#include "model/access.h"
#include "model/job_spec.h"
#include "model/output_pattern.h"
#include "model/spec_checks.h"
#include "scheduling/book_entries.h"

namespace gpu_platform::controller {

using base::ErrorCode;
using model::Job;
using model::JobSpec;

namespace {

// Options that decide about the start of a job can change only before the start.
base::Status check_new_start(const Job& job, const model::JobChanged& change) {
  const bool has_begin = change.to.get(&JobSpec::begin) != nullptr;
  if (!model::is_active(job.state) || (!has_begin && !change.dependencies)) return {};
  const std::string_view field = has_begin ? "begin" : "dependency";
  return refused(fmt::format("{}: job {} is {}; this can be changed only before a job starts",
                             field, name_of(job), to_string(job.state)),
                 std::string(field));
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

// Returns what the command changes in the job.
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
  return refused(
      "preemptible: a job with a pipe as its input cannot be preempted, because a restart loses "
      "what was sent",
      "preemptible");
}

// A quota of GPU-hours is never exceeded, even if an administrator gives a running job more time.
base::Status check_longer(const State& state, const Job& job, base::Duration time_limit) {
  if (time_limit <= job.spec->time_limit) return {};
  const model::Organisation& organisation = *state.policy->organisation;
  const base::GpuShare gpus = scheduling::gpu_share_of(job.spec->request);
  scheduling::QuotaLedger more;
  for (const model::Attempt& attempt : job.attempts) {
    const bool is_of_period = attempt.requested_at >= state.books->period_use->begin;
    if (!model::holds_resources(attempt.state) || !is_of_period) continue;
    const base::Duration then = model::limit_at_speed(time_limit, attempt.allocation.speed);
    const base::Duration now = scheduling::time_limit_of(job, attempt);
    const std::uint64_t committed =
        scheduling::gpu_time(gpus, then) - scheduling::gpu_time(gpus, now);
    more.add(organisation, *job.spec, {.committed = committed}, attempt.gpu_type);
  }
  const auto excess =
      scheduling::excess_of_hours(organisation, *job.spec, state.books->quotas, more);
  if (!excess) return {};
  return refused(fmt::format("time_limit_seconds: {}", describe(*excess)), "time_limit_seconds");
}

// Returns what keeps the job from being work that cannot be stopped on what it holds in the pool.
std::optional<model::QuotaExcess> excess_if_firm(
    const State& state, const scheduling::ByPool<scheduling::Lending>::value_type& pool,
    const Job& job, const JobSpec& then) {
  scheduling::PoolBalance balance = pool.second.balance();
  scheduling::PoolAsk ask = scheduling::pool_ask(balance.guarantees(), *state.policy, then);
  const base::GpuShare of_one = std::exchange(ask.gpus, {});
  for (const model::Attempt& each : job.attempts) {
    if (!model::holds_resources(each.state)) continue;
    const auto* held_in = state.books->lending.of_type(each.gpu_type);
    if (held_in == nullptr || held_in->first != pool.first) continue;
    balance.remove(scheduling::pool_ask(balance.guarantees(), *state.policy, *job.spec,
                                        scheduling::record_of(job, each)));
    ask.gpus += of_one;
  }
  auto excess = balance.excess_of(ask);
  if (excess) excess = state.books->lending.named(*std::move(excess), pool.first);
  return excess;
}

// A job that runs on GPUs of others must stay preemptible.
base::Status check_still_stoppable(const State& state, const Job& job,
                                   const model::JobChanged& change) {
  if (!model::holds_resources(job) || !state.books->lending.is_active()) return {};
  const JobSpec then = change.to.applied_to(*job.spec);
  const model::Policy& policy = *state.policy;
  if (!model::may_borrow(*job.spec, policy) || model::may_borrow(then, policy)) return {};
  std::optional<model::QuotaExcess> excess;
  for (const auto& pool : state.books->lending.all()) {
    if (!excess) excess = excess_if_firm(state, pool, job, then);
  }
  if (!excess) return {};
  const std::string_view field =
      change.to.get(&JobSpec::preemptible) != nullptr ? "preemptible" : "priority";
  return refused(fmt::format("{}: job {} uses GPUs that are guaranteed to others, so it must stay "
                             "preemptible: {}",
                             field, name_of(job), describe(*excess)),
                 std::string(field));
}

base::Status check_new_limit(const State& state, const model::Caller& caller, const Job& job,
                             base::Duration time_limit) {
  TRY(check_longer(state, job, time_limit));
  TRY(check_no_reservation_passed(state, job, time_limit));
  if (model::has(caller, model::Right::kPassLimits)) return {};
  if (model::is_active(job.state) && time_limit > job.spec->time_limit) {
    return base::fail(ErrorCode::kPermissionDenied,
                      fmt::format("time_limit_seconds: job {} is {}, so its time limit can only be "
                                  "shortened; ask an operator to extend it",
                                  name_of(job), to_string(job.state)),
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
                         fmt::format("labels: job {} would have {}; the limit is {}", name_of(job),
                                     then.labels.size(), model::kMaxLabels));
  }
  const bool is_named_by = model::names_job(job.spec->output) || model::names_job(job.spec->error);
  if (change.to.get(&JobSpec::name) && is_named_by && !job.attempts.empty()) {
    return refused(fmt::format("name: the output files of job {} are named by it (%x), and it has "
                               "started",
                               name_of(job)),
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
    TRY(check_times(then, earliest));
    TRY(is_active ? check_end_in_reservation(
                        state, then, std::max(earliest, job.current_attempt()->requested_at))
                  : check_reservation_times(state, then, now));
  }
  return has_limit ? check_new_limit(state, caller, job, then.time_limit) : base::Status();
}

// A waiting job is judged as if it were submitted so. What an attempt holds is what was asked for.
base::Status check_new_request(const State& state, Feasibility& feasibility, const Job& job,
                               const model::JobChanged& change, base::Instant now) {
  if (!change.to.changes_request()) return {};
  const std::string_view field = change.to.first_name();
  if (!job.spec->workload.empty()) {
    return refused(fmt::format("{}: job {} belongs to {}, whose pods define what it needs: change "
                               "that workload",
                               field, name_of(job), job.spec->workload),
                   std::string(field));
  }
  if (model::is_active(job.state)) {
    return refused(fmt::format("{}: job {} is {}; only a waiting job's requests can be changed: "
                               "use 'jobs requeue --hold', 'jobs update' and 'jobs release'",
                               field, name_of(job), to_string(job.state)),
                   std::string(field));
  }
  if (model::holds_resources(job)) {
    return refused(fmt::format("{}: the GPUs of the last attempt of job {} are being cleaned; try "
                               "again in a moment",
                               field, name_of(job)),
                   std::string(field));
  }
  JobSpec then = change.to.applied_to(*job.spec);
  TRY(model::check_request(then.request));
  TRY(model::check_processes(then));
  TRY(check_engines(then));
  TRY(check_speeds(state, then.request, then.time_limit));
  TRY(feasibility.check(state.nodes, then.request, state.policy->sharing));
  TRY(enter_reservation(state, then, now));
  return check_could_run(state, then);
}

// A budget that is below what has been spent ends an active job at once, as a shorter time limit
// does.
base::Status check_new_budget(const State& state, const Job& job, const model::JobChanged& change,
                              base::Instant now) {
  const bool is_of_cost = change.to.get(&JobSpec::budget) != nullptr || change.to.changes_request();
  if (!is_of_cost || model::is_active(job.state)) return {};
  return check_job_budget(state, change.to.applied_to(*job.spec), spent_by(state, job), now);
}

}  // namespace

namespace {

Dependent dependent_of(const Job& job) {
  return {*job.spec, job.id, job.is_member() ? std::optional(job.array_index) : std::nullopt};
}

}  // namespace

base::Result<std::optional<model::JobChanged>> judge_update(const State& state,
                                                            Feasibility& feasibility,
                                                            const model::Caller& caller,
                                                            const model::UpdateJob& command,
                                                            base::Instant now) {
  TRY_ASSIGN(const Job* job, find_for(state, caller, command.job));
  model::JobChanged change = change_of(*job, command);
  if (const auto* asked = change.to.get(&JobSpec::dependencies)) {
    TRY_ASSIGN(change.dependencies,
               judge_dependencies(state, caller, dependent_of(*job), *asked, command.ended));
    // The job exists and may have waited long, so a mistake in the command does not end it.
    if (!change.dependencies->failure.empty()) {
      return refused("dependency: " + change.dependencies->failure, "dependency");
    }
  }
  if (const auto* name = change.to.get(&JobSpec::name)) TRY(check_name(state, *job, *name));
  TRY(check_update(state, caller, *job, change, now));
  TRY(check_new_request(state, feasibility, *job, change, now));
  TRY(check_new_budget(state, *job, change, now));
  if (change.to.empty()) return std::nullopt;
  change.by = caller.user;
  return change;
}

}  // namespace gpu_platform::controller
