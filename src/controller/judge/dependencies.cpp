#include "controller/judge/dependencies.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "model/access.h"
#include "model/job_spec.h"

namespace gpu_platform::controller {

using base::ErrorCode;
using model::Dependency;
using model::DependencyKind;
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
  // `of`: the job that would wait so.
  std::string from(const std::vector<Dependency>& asked, JobId of) {
    for (const Dependency& dependency : asked) {
      if (reaches(dependency, of)) {
        if (of != job_) path_ = fmt::format("{} → {}", of.value, path_);
        return fmt::format("{} → {}{}", job_.value, path_, job_.value);
      }
    }
    return {};
  }

 private:
  bool reaches(const Dependency& dependency, JobId of) {
    if (dependency.kind == DependencyKind::kSingleton) return reaches_earlier(of);
    const DependencyTarget& target = dependency.on;
    if (!seen_.insert(target).second) return false;
    const JobId last = last_of(target);
    for (JobId id = target.job; id <= last; id.value += 1) {
      if (reaches_from(id)) return true;
    }
    return false;
  }

  bool reaches_earlier(JobId of) {
    const auto name = AdmissionGates::name_of(*state_.jobs.find(of.value)->spec);
    const std::set<JobId>* open = state_.admission_gates.open_of(name);
    if (open == nullptr) return false;
    JobId& looked_at = looked_at_[name];
    for (auto id = open->upper_bound(looked_at); id != open->end() && *id < of; ++id) {
      looked_at = *id;
      if (reaches_from(*id)) return true;
    }
    return false;
  }

  bool reaches_from(JobId id) {
    if (id == job_) return true;
    const Job* job = state_.jobs.find(id.value);
    if (job == nullptr || !waited_for_.insert(id).second) return false;
    for (const Dependency& next : job->waits_for) {
      if (!reaches(next, id)) continue;
      path_ = fmt::format("{} → {}", id.value, path_);
      return true;
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
  std::map<AdmissionGates::NameKey, JobId> looked_at_;  // of earlier jobs of a name, the last one
  std::set<JobId> waited_for_;
};

// Returns a job of the target that is in the core.
const Job& first_of(const State& state, const DependencyTarget& target) {
  JobId id = target.job;
  while (state.jobs.find(id.value) == nullptr) ++id.value;
  return *state.jobs.find(id.value);
}

std::unexpected<base::Error> no_such_target(const DependencyTarget& target) {
  return base::fail(ErrorCode::kNotFound,
                    fmt::format("dependency: there is no job {}", target.job.value), "dependency");
}

// A job of another user is treated as if it did not exist.
base::Result<model::TargetOutcome> find_target(const State& state, const model::Caller& caller,
                                               const DependencyTarget& target,
                                               const std::vector<model::EndedTarget>& ended) {
  if (const auto outcome = outcome_of(state, target)) {
    const bool is_own = first_of(state, target).spec->uid == caller.uid;
    if (!is_own && !model::has(caller, model::Right::kSeeJobs)) return no_such_target(target);
    return *outcome;
  }
  const auto found = std::ranges::find(ended, target, &model::EndedTarget::target);
  if (found == ended.end()) return no_such_target(target);
  return found->outcome;
}

// Returns whether it waits for earlier jobs of its name. The members of a new array also wait for
// each other; the first of all is freed when they are there.
bool waits_for_name(const State& state, const Dependent& dependent) {
  if (dependent.spec.array && !dependent.id.valid()) return true;
  const auto* open = state.admission_gates.open_of(AdmissionGates::name_of(dependent.spec));
  return open != nullptr && (!dependent.id.valid() || *open->begin() < dependent.id);
}

// Any job of its target counts: as afterok says.
Dependency as_whole(Dependency dependency) {
  if (dependency.kind == DependencyKind::kAfterCorr) dependency.kind = DependencyKind::kAfterOk;
  return dependency;
}

// Returns the outcome of a member of an array that has other members in the core.
base::Result<model::TargetOutcome> outcome_of_member(const State& state, JobId array, JobId member,
                                                     const std::vector<model::EndedTarget>& ended) {
  if (const auto outcome = outcome_of(state, {member, false})) return *outcome;
  const auto found =
      std::ranges::find(ended, DependencyTarget{member, false}, &model::EndedTarget::target);
  if (found != ended.end()) return found->outcome;
  // It has left the core: where none of them failed, it did not.
  if (!state.arrays.find(array.value)->outcome.failed.valid()) return model::TargetOutcome{};
  return no_such_target({member, false});
}

// aftercorr: each index of the dependent waits for the same one of the array.
base::Status add_corresponding(const State& state, const Dependent& dependent, JobId array,
                               const std::vector<model::EndedTarget>& ended,
                               model::NewDependencies& judged) {
  const model::ArraySpec& target = *first_of(state, {array, true}).spec->array;
  const std::uint64_t members = dependent.index ? 1 : member_count(*dependent.spec.array);
  for (std::uint64_t at = 0; at < members; ++at) {
    const std::uint32_t index =
        dependent.index ? *dependent.index : index_at(*dependent.spec.array, at);
    const auto position = position_of(target, index);
    if (!position) {
      return base::fail(
          ErrorCode::kFailedPrecondition,
          fmt::format("dependency: aftercorr:{}: that array has no index {}", array.value, index),
          "dependency");
    }
    const JobId member(array.value + *position);
    TRY_ASSIGN(const model::TargetOutcome outcome, outcome_of_member(state, array, member, ended));
    if (outcome.failed.valid()) {
      return base::fail(ErrorCode::kFailedPrecondition,
                        fmt::format("dependency: aftercorr:{}: {}_{} has ended {}", array.value,
                                    array.value, index, to_string(outcome.failed_as)),
                        "dependency");
    }
    if (outcome.open > 0) {
      judged.waits_for.push_back({DependencyKind::kAfterCorr, {member, false}});
    }
  }
  return {};
}

}  // namespace

base::Status check_times(const model::JobSpec& spec, base::Instant earliest,
                         TimeLimitFrom limit_from) {
  if (!spec.deadline.is_set()) return {};
  if (spec.deadline <= earliest) {
    return base::fail(ErrorCode::kFailedPrecondition, "deadline: it has passed", "deadline");
  }
  const base::Instant start = std::max(earliest, spec.begin);
  if (start + spec.time_limit <= spec.deadline) return {};
  const base::Duration left = std::max(spec.deadline - start, base::Duration());
  return base::fail(
      ErrorCode::kFailedPrecondition,
      fmt::format(
          "deadline: the job cannot end by then: {} are left after {}, and its time limit is "
          "{}{}; give a shorter time limit or a later deadline",
          shown(left), spec.begin > earliest ? "its begin" : "the earliest start",
          shown(spec.time_limit), limit_from == TimeLimitFrom::kJob ? "" : " (the default)"),
      "deadline");
}

base::Result<model::NewDependencies> judge_dependencies(
    const State& state, const model::Caller& caller, const Dependent& dependent,
    const std::vector<Dependency>& asked, const std::vector<model::EndedTarget>& ended) {
  model::NewDependencies judged;
  const bool is_array = dependent.index.has_value() || dependent.spec.array.has_value();
  for (const Dependency& dependency : asked) {
    if (dependency.kind == DependencyKind::kSingleton) {
      if (waits_for_name(state, dependent)) judged.waits_for.push_back(dependency);
      continue;
    }
    const bool corresponds = dependency.kind == DependencyKind::kAfterCorr && is_array &&
                             state.arrays.find(dependency.on.job.value) != nullptr;
    if (corresponds && dependency.on.whole_array) {
      TRY(find_target(state, caller, dependency.on, ended));
      TRY(add_corresponding(state, dependent, dependency.on.job, ended, judged));
      continue;
    }
    TRY_ASSIGN(const model::TargetOutcome outcome,
               find_target(state, caller, dependency.on, ended));
    const auto verdict = model::judge(dependency.kind, outcome);
    if (verdict == model::DependencyVerdict::kWaits)
      judged.waits_for.push_back(as_whole(dependency));
    if (verdict == model::DependencyVerdict::kNever && judged.failure.empty()) {
      judged.failure = describe_failure(dependency, outcome);
    }
  }
  // No job waits for a new job.
  const std::string circle =
      dependent.id.valid() ? CircleSearch(state, dependent.id).from(judged.waits_for, dependent.id)
                           : std::string();
  if (circle.empty()) return judged;
  return base::fail(ErrorCode::kFailedPrecondition,
                    fmt::format("dependency: the jobs would wait for each other: {}", circle),
                    "dependency");
}

base::Status check_name(const State& state, const Job& job, const std::string& name) {
  const auto* open = state.admission_gates.open_of({job.spec->uid, name});
  if (open == nullptr || job.waits_for.empty() || name == job.spec->name) return {};
  for (auto id = open->upper_bound(job.id); id != open->end(); ++id) {
    const auto& waits_for = state.jobs.find(id->value)->waits_for;
    const bool is_singleton = std::ranges::any_of(waits_for, [](const Dependency& dependency) {
      return dependency.kind == DependencyKind::kSingleton;
    });
    if (!is_singleton) continue;
    const std::string circle = CircleSearch(state, *id).from(job.waits_for, job.id);
    if (circle.empty()) continue;
    return base::fail(ErrorCode::kFailedPrecondition,
                      fmt::format("name: the jobs would wait for each other: {}", circle), "name");
  }
  return {};
}

}  // namespace gpu_platform::controller
