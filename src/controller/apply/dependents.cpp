#include "controller/apply/dependents.h"

#include <algorithm>
#include <set>

namespace gpu_platform::controller {

using model::Job;

namespace {

void resolve_of(Job& dependent, const model::DependencyTarget& target,
                const model::TargetOutcome& outcome) {
  std::erase_if(dependent.waits_for, [&](const model::Dependency& dependency) {
    if (dependency.on != target || dependency.kind == model::DependencyKind::kSingleton)
      return false;
    const auto verdict = judge(dependency.kind, outcome);
    if (verdict == model::DependencyVerdict::kNever && dependent.dependency_failure.empty()) {
      dependent.dependency_failure = describe_failure(dependency, outcome);
    }
    return verdict != model::DependencyVerdict::kWaits;
  });
}

}  // namespace

void note_end_of_member(Application& a, const Job& j) {
  if (!j.is_member()) return;
  model::TargetOutcome& outcome = a.state.arrays.find_mutable(j.array_id.value)->outcome;
  const bool had_failed = outcome.failed.valid();
  --outcome.open;
  const bool was_last_to_start = !model::has_started(j) && --outcome.unstarted == 0;
  model::count_end(j, outcome);
  // An end that does not change the answer wakes no dependent.
  if (outcome.open == 0 || was_last_to_start || outcome.failed.valid() != had_failed)
    resolve_dependents(a, {j.array_id, true});
}

void note_first_start(Application& a, const Job& j) {
  resolve_dependents(a, {j.id, false});
  if (!j.is_member()) return;
  model::TargetOutcome& outcome = a.state.arrays.find_mutable(j.array_id.value)->outcome;
  if (--outcome.unstarted == 0) resolve_dependents(a, {j.array_id, true});
}

void resolve_dependents(Application& a, const model::DependencyTarget& target) {
  const std::set<model::JobId> dependents = a.state.admission_gates.dependents(target);
  if (dependents.empty()) return;
  const model::TargetOutcome outcome = *outcome_of(a.state, target);
  for (const model::JobId id : dependents) {
    Job& j = a.job(id);
    a.state.admission_gates.leave(j);
    resolve_of(j, target, outcome);
    a.state.admission_gates.enter(j);
  }
}

void free_singleton(Application& a, const AdmissionGates::NameKey& name) {
  const auto* open = a.state.admission_gates.open_of(name);
  if (open == nullptr) return;
  const auto is_singleton = [](const model::Dependency& dependency) {
    return dependency.kind == model::DependencyKind::kSingleton;
  };
  // Looked at first: a job that is to be changed is copied away from published snapshots.
  const model::JobId id = *open->begin();
  if (std::ranges::none_of(find_job(a.state, id)->waits_for, is_singleton)) return;
  Job& first = a.job(id);
  a.state.admission_gates.leave(first);
  std::erase_if(first.waits_for, is_singleton);
  a.state.admission_gates.enter(first);
}

}  // namespace gpu_platform::controller
