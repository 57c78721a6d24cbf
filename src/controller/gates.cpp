#include "controller/gates.h"

namespace gpu_platform::controller {

namespace {

bool is_before_start(model::JobState state) {
  return model::is_waiting(state) || state == model::JobState::kHeld ||
         state == model::JobState::kPreempted;
}

bool takes_place(model::JobState state) {
  return state == model::JobState::kQueued || model::is_active(state);
}

}  // namespace

bool waits_for_time(const model::Job& job) {
  const bool is_out_of_queue =
      job.state == model::JobState::kPending || job.state == model::JobState::kPreempted;
  return is_out_of_queue && job.waits_for.empty() && job.dependency_failure.empty();
}

void Gates::set_limit(model::JobId array, std::uint32_t limit) {
  if (limit != 0) arrays_[array].limit = limit;
}

Gates::ArrayGate* Gates::gate_of(const model::Job& job) {
  if (!job.is_member()) return nullptr;
  const auto found = arrays_.find(job.array_id);
  return found == arrays_.end() ? nullptr : &found->second;
}

void Gates::offer(const ArrayGate& gate) {
  if (!gate.ready.empty() && gate.open < gate.limit) {
    becoming_eligible_.insert(*gate.ready.begin());
  }
}

void Gates::withdraw(const ArrayGate& gate) {
  if (!gate.ready.empty()) becoming_eligible_.erase(*gate.ready.begin());
}

void Gates::enter(const model::Job& job) {
  ArrayGate* gate = gate_of(job);
  if (gate != nullptr) withdraw(*gate);
  if (gate != nullptr && takes_place(job.state)) ++gate->open;
  if (waits_for_time(job)) {
    (gate != nullptr ? gate->ready : becoming_eligible_).emplace(job.eligible_at, job.id);
  }
  if (gate != nullptr) offer(*gate);
  if (!is_before_start(job.state)) return;
  const base::Instant last = model::last_start(job);
  if (last.is_set()) last_starts_.emplace(last, job.id);
  if (!job.dependency_failure.empty()) hopeless_.insert(job.id);
  const std::string& window = job.spec->request.window;
  if (!window.empty()) of_windows_[window].insert(job.id);
  for (const model::Dependency& dependency : job.waits_for) {
    dependents_[dependency.on].insert(job.id);
  }
}

void Gates::leave(const model::Job& job) {
  ArrayGate* gate = gate_of(job);
  if (gate != nullptr) withdraw(*gate);
  if (gate != nullptr && takes_place(job.state)) --gate->open;
  if (waits_for_time(job)) {
    (gate != nullptr ? gate->ready : becoming_eligible_).erase({job.eligible_at, job.id});
  }
  if (gate != nullptr) offer(*gate);
  if (!is_before_start(job.state)) return;
  const base::Instant last = model::last_start(job);
  if (last.is_set()) last_starts_.erase({last, job.id});
  hopeless_.erase(job.id);
  if (const auto of_window = of_windows_.find(job.spec->request.window);
      of_window != of_windows_.end()) {
    of_window->second.erase(job.id);
    if (of_window->second.empty()) of_windows_.erase(of_window);
  }
  for (const model::Dependency& dependency : job.waits_for) {
    const auto found = dependents_.find(dependency.on);
    if (found == dependents_.end()) continue;
    found->second.erase(job.id);
    if (found->second.empty()) dependents_.erase(found);
  }
}

std::set<model::JobId> Gates::dependents(const model::DependencyTarget& target) const {
  const auto found = dependents_.find(target);
  return found == dependents_.end() ? std::set<model::JobId>() : found->second;
}

}  // namespace gpu_platform::controller
