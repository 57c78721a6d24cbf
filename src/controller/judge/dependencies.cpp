#include "controller/judge/dependencies.h"

#include <algorithm>
#include <set>
#include <utility>

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

  JobId last_of(const DependencyTarget& target) {
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

// Somebody else's job is as if it were not there.
base::Result<model::TargetOutcome> find_target(const State& state, const model::Caller& caller,
                                               const DependencyTarget& target,
                                               const std::vector<model::EndedTarget>& ended) {
  if (const auto outcome = outcome_of(state, target)) {
    const bool is_own = first_of(state, target).spec->uid == caller.uid;
    if (!is_own && !caller.is_administrator) return no_such_target(target);
    return *outcome;
  }
  const auto found = std::ranges::find(ended, target, &model::EndedTarget::target);
  if (found == ended.end()) return no_such_target(target);
  return found->outcome;
}

}  // namespace

base::Status check_times(const State& state, const model::JobSpec& spec, base::Instant earliest) {
  if (!spec.deadline.is_set()) return {};
  if (spec.deadline <= earliest) {
    return base::fail(ErrorCode::kFailedPrecondition, "deadline: it has passed", "deadline");
  }
  const bool is_limited = spec.time_limit != base::Duration();
  const base::Duration limit = is_limited ? spec.time_limit : state.policy->max_time_limit;
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

base::Result<model::NewDependencies> judge_dependencies(
    const State& state, const model::Caller& caller, const std::vector<Dependency>& asked,
    const std::vector<model::EndedTarget>& ended, JobId id) {
  model::NewDependencies judged;
  for (const Dependency& dependency : asked) {
    TRY_ASSIGN(const model::TargetOutcome outcome,
               find_target(state, caller, dependency.on, ended));
    const auto verdict = model::judge(dependency.kind, outcome);
    if (verdict == model::DependencyVerdict::kWaits) judged.waits_for.push_back(dependency);
    if (verdict == model::DependencyVerdict::kNever && judged.failure.empty()) {
      judged.failure = describe_failure(dependency, outcome);
    }
  }
  // A new job is waited for by nobody.
  const std::string circle = id.valid() ? CircleSearch(state, id).from(asked) : std::string();
  if (circle.empty()) return judged;
  return base::fail(ErrorCode::kFailedPrecondition,
                    fmt::format("dependency: the jobs would wait for each other: {}", circle),
                    "dependency");
}

}  // namespace gpu_platform::controller
