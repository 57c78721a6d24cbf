#include <algorithm>
#include <set>
#include <utility>

#include "controller/core.h"

// Jobs that depend on times, on other jobs and on each other: begin, deadline, dependencies,
// arrays.

namespace gpu_platform::controller {

using base::ErrorCode;
using model::Dependency;
using model::DependencyTarget;
using model::Job;
using model::JobId;

namespace {

// "1:30:00"
std::string shown(base::Duration duration) {
  const std::int64_t seconds = duration.value() / base::seconds(1).value();
  return fmt::format("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

// Looks for a way from what a job is to wait for back to the job itself.
class CircleSearch {
 public:
  CircleSearch(const State& state, JobId job) : state_(state), job_(job) {}

  // The circle as "12 → 14 → 12"; empty: there is none.
  std::string from(const std::vector<Dependency>& asked) {
    for (const Dependency& dependency : asked) {
      if (reaches(dependency.on)) {
        return fmt::format("{} → {}{}", job_.value, path_, job_.value);
      }
    }
    return {};
  }

 private:
  bool reaches(const DependencyTarget& target) {
    if (!seen_.insert(target).second) return false;
    const JobId last = last_of(target);
    for (JobId id = target.job; id <= last; id.value += 1) {
      if (id == job_) return true;
      const Job* job = state_.jobs.find(id.value);
      if (job == nullptr || !waited_for_.insert(id).second) continue;
      for (const Dependency& next : job->waits_for) {
        if (!reaches(next.on)) continue;
        path_ = fmt::format("{} → {}", id.value, path_);
        return true;
      }
    }
    return false;
  }

  JobId last_of(const DependencyTarget& target) const {
    const auto* array = target.whole_array ? state_.arrays.find(target.job.value) : nullptr;
    return array == nullptr ? target.job : JobId(target.job.value + array->size - 1);
  }

  const State& state_;
  JobId job_;
  std::string path_;
  std::set<DependencyTarget> seen_;
  std::set<JobId> waited_for_;
};

// A job of the target, which is in the core.
const Job& first_of(const State& state, const DependencyTarget& target) {
  JobId id = target.job;
  while (state.jobs.find(id.value) == nullptr) ++id.value;
  return *state.jobs.find(id.value);
}

std::unexpected<base::Error> no_such_target(const DependencyTarget& target) {
  return base::fail(ErrorCode::kNotFound,
                    fmt::format("dependency: there is no job {}", target.job.value), "dependency");
}

}  // namespace

// `earliest`: when it could start at the earliest, or did.
base::Status Core::check_times(const model::JobSpec& spec, base::Instant earliest) const {
  if (!spec.deadline.is_set()) return {};
  if (spec.deadline <= earliest) {
    return base::fail(ErrorCode::kFailedPrecondition, "deadline: it has passed", "deadline");
  }
  const bool is_limited = spec.time_limit != base::Duration();
  const base::Duration limit = is_limited ? spec.time_limit : state_.policy->max_time_limit;
  const base::Instant start = std::max(earliest, spec.begin);
  if (start + limit <= spec.deadline) return {};
  const base::Duration left = std::max(spec.deadline - start, base::Duration());
  return base::fail(
      ErrorCode::kFailedPrecondition,
      fmt::format("deadline: {} lie between {} and the deadline, and the time limit is {}{}",
                  shown(left), spec.begin > earliest ? "begin" : "the earliest start", shown(limit),
                  is_limited ? "" : " (the site's longest, as time_limit_seconds gives none)"),
      "deadline");
}

// Somebody else's job is as if it were not there.
base::Result<model::TargetOutcome> Core::find_target(
    const model::Caller& caller, const DependencyTarget& target,
    const std::vector<model::EndedTarget>& ended) const {
  if (const auto outcome = outcome_of(state_, target)) {
    const bool is_own = first_of(state_, target).spec->uid == caller.uid;
    if (!is_own && !caller.is_administrator) return no_such_target(target);
    return *outcome;
  }
  const auto found = std::ranges::find(ended, target, &model::EndedTarget::target);
  if (found == ended.end()) return no_such_target(target);
  return found->outcome;
}

base::Result<model::NewDependencies> Core::judge_dependencies(
    const model::Caller& caller, const std::vector<Dependency>& asked,
    const std::vector<model::EndedTarget>& ended, JobId id) const {
  model::NewDependencies judged;
  judged.asked = asked;
  for (const Dependency& dependency : asked) {
    TRY_ASSIGN(const model::TargetOutcome outcome, find_target(caller, dependency.on, ended));
    const auto verdict = model::judge(dependency.kind, outcome);
    if (verdict == model::DependencyVerdict::kWaits) judged.waits_for.push_back(dependency);
    if (verdict == model::DependencyVerdict::kNever && judged.failure.empty()) {
      judged.failure = describe_failure(dependency, outcome);
    }
  }
  // A new job is waited for by nobody.
  const std::string circle = id.valid() ? CircleSearch(state_, id).from(asked) : std::string();
  if (circle.empty()) return judged;
  return base::fail(ErrorCode::kFailedPrecondition,
                    fmt::format("dependency: the jobs would wait for each other: {}", circle),
                    "dependency");
}

base::Result<std::vector<JobId>> Core::members_for(const model::Caller& caller,
                                                   JobId array_id) const {
  const model::JobArray* array = state_.arrays.find(array_id.value);
  if (array == nullptr) {
    return base::fail(ErrorCode::kNotFound, fmt::format("there is no job {}", array_id.value),
                      "id");
  }
  std::vector<JobId> members;
  for (std::uint64_t position = 0; position < array->size; ++position) {
    const JobId id(array_id.value + position);
    if (find_job(id) == nullptr) continue;
    TRY(find_for(caller, id));
    members.push_back(id);
  }
  return members;
}

namespace {

// Where nothing could be done with any member, the first refusal is the array's.
base::Result<model::CommandReply> summed_up(JobId array, std::vector<model::JobOutcome> outcomes) {
  model::CommandReply reply;
  reply.job = array;
  reply.changed = std::ranges::any_of(outcomes, &model::JobOutcome::changed);
  const bool is_refused = std::ranges::all_of(
      outcomes, [](const model::JobOutcome& outcome) { return outcome.refusal.has_value(); });
  if (is_refused) return std::unexpected(*outcomes.front().refusal);
  reply.jobs = std::move(outcomes);
  return reply;
}

}  // namespace

base::Result<model::CommandReply> Core::act_on_array(const model::Caller& caller,
                                                     const model::ActOnJob& command,
                                                     base::Instant now) {
  TRY_ASSIGN(const std::vector<JobId> members, members_for(caller, command.job));
  std::vector<model::JobOutcome> outcomes;
  for (const JobId id : members) {
    // One that has ended and is still being cleaned up is no hindrance for the others.
    const Job* job = find_job(id);
    if (job == nullptr || model::is_ended(job->state)) continue;
    const auto done = act(caller, *job, command.action, false, now);
    outcomes.push_back({id, done && *done, std::nullopt});
    if (!done) outcomes.back().refusal = done.error();
  }
  if (outcomes.empty()) return model::CommandReply{command.job, false};
  return summed_up(command.job, std::move(outcomes));
}

base::Result<model::CommandReply> Core::update_array(const model::Caller& caller,
                                                     const model::UpdateJob& command,
                                                     base::Instant now) {
  TRY_ASSIGN(const std::vector<JobId> members, members_for(caller, command.job));
  std::vector<model::JobOutcome> outcomes;
  for (const JobId id : members) {
    if (model::is_ended(find_job(id)->state)) continue;
    model::UpdateJob one = command;
    one.job = id;
    const auto done = update_one(caller, one, now);
    outcomes.push_back({id, done && *done, std::nullopt});
    if (!done) outcomes.back().refusal = done.error();
  }
  if (outcomes.empty()) return model::CommandReply{command.job, false};
  return summed_up(command.job, std::move(outcomes));
}

}  // namespace gpu_platform::controller
