#include "controller/admission_gates.h"
#include "model/job_spec.h"

#include <algorithm>

namespace gpu_platform::controller {

namespace {

bool is_before_start(model::JobState state) {
  return model::is_waiting(state) || state == model::JobState::kHeld ||
         state == model::JobState::kPreempted;
}

bool takes_place(const model::Job& job) {
  return job.state == model::JobState::kQueued || model::is_active(job.state) ||
         (is_before_start(job.state) && has_leftovers(job));
}

}  // namespace

bool has_leftovers(const model::Job& job) {
  return std::ranges::any_of(job.attempts, [](const model::Attempt& attempt) {
    return model::holds_resources(attempt.state) && attempt.exit.lost != model::Lost::kNodeLost;
  });
}

bool waits_for_time(const model::Job& job) {
  const bool is_out_of_queue =
      job.state == model::JobState::kPending || job.state == model::JobState::kPreempted;
  return is_out_of_queue && job.waits_for.empty() && job.dependency_failure.empty();
}

void AdmissionGates::set_limit(model::JobId array, std::uint32_t limit) {
  if (limit != 0) arrays_[array].limit = limit;
}

AdmissionGates::ArrayGate* AdmissionGates::gate_of(const model::Job& job) {
  if (!job.is_member()) return nullptr;
  const auto found = arrays_.find(job.array_id);
  return found == arrays_.end() ? nullptr : &found->second;
}

// The place of one that still has leftovers is its own.
AdmissionGates::Times& AdmissionGates::times_of(ArrayGate* gate, const model::Job& job) {
  if (gate == nullptr || takes_place(job)) return becoming_eligible_;
  return job.attempts.empty() ? gate->ready : gate->ready_again;
}

bool AdmissionGates::goes_after_sister(const model::Job& job, base::Instant now) const {
  const auto found = job.is_member() ? arrays_.find(job.array_id) : arrays_.end();
  if (found == arrays_.end() || !job.attempts.empty()) return false;
  const Times& again = found->second.ready_again;
  return !again.empty() && again.begin()->first <= now;
}

void AdmissionGates::offer(const ArrayGate& gate) {
  if (gate.open >= gate.limit) return;
  if (!gate.ready.empty()) becoming_eligible_.insert(*gate.ready.begin());
  if (!gate.ready_again.empty()) becoming_eligible_.insert(*gate.ready_again.begin());
}

void AdmissionGates::withdraw(const ArrayGate& gate) {
  if (!gate.ready.empty()) becoming_eligible_.erase(*gate.ready.begin());
  if (!gate.ready_again.empty()) becoming_eligible_.erase(*gate.ready_again.begin());
}

void AdmissionGates::enter(const model::Job& job) {
  ArrayGate* gate = gate_of(job);
  if (gate != nullptr) withdraw(*gate);
  if (gate != nullptr && takes_place(job)) ++gate->open;
  if (waits_for_time(job)) times_of(gate, job).emplace(job.eligible_at, job.id);
  if (gate != nullptr) offer(*gate);
  if (!model::is_ended(job.state)) open_by_name_[name_of(*job.spec)].insert(job.id);
  if (!is_before_start(job.state)) return;
  const base::Instant last = model::last_start(job);
  if (last.is_set()) last_starts_.emplace(last, job.id);
  if (!job.dependency_failure.empty()) hopeless_.insert(job.id);
  const std::string& reservation = job.spec->request.reservation;
  if (!reservation.empty()) of_reservations_[reservation].insert(job.id);
  for (const model::Dependency& dependency : job.waits_for) {
    if (dependency.kind == model::DependencyKind::kSingleton) continue;
    dependents_[dependency.on].insert(job.id);
  }
}

void AdmissionGates::leave(const model::Job& job) {
  ArrayGate* gate = gate_of(job);
  if (gate != nullptr) withdraw(*gate);
  if (gate != nullptr && takes_place(job)) --gate->open;
  if (waits_for_time(job)) times_of(gate, job).erase({job.eligible_at, job.id});
  if (gate != nullptr) offer(*gate);
  if (const auto open = open_by_name_.find(name_of(*job.spec)); open != open_by_name_.end()) {
    open->second.erase(job.id);
    if (open->second.empty()) open_by_name_.erase(open);
  }
  if (!is_before_start(job.state)) return;
  const base::Instant last = model::last_start(job);
  if (last.is_set()) last_starts_.erase({last, job.id});
  hopeless_.erase(job.id);
  if (const auto of_reservation = of_reservations_.find(job.spec->request.reservation);
      of_reservation != of_reservations_.end()) {
    of_reservation->second.erase(job.id);
    if (of_reservation->second.empty()) of_reservations_.erase(of_reservation);
  }
  for (const model::Dependency& dependency : job.waits_for) {
    const auto found = dependents_.find(dependency.on);
    if (found == dependents_.end()) continue;
    found->second.erase(job.id);
    if (found->second.empty()) dependents_.erase(found);
  }
}

const std::set<model::JobId>* AdmissionGates::open_of(const NameKey& name) const {
  const auto found = open_by_name_.find(name);
  return found == open_by_name_.end() ? nullptr : &found->second;
}

std::set<model::JobId> AdmissionGates::dependents(const model::DependencyTarget& target) const {
  const auto found = dependents_.find(target);
  return found == dependents_.end() ? std::set<model::JobId>() : found->second;
}

}  // namespace gpu_platform::controller
