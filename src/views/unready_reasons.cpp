#include "views/unready_reasons.h"

#include "model/job_spec.h"
#include "model/policy.h"
#include "model/reservation.h"
#include "scheduling/reservations/reservations.h"

namespace gpu_platform::views {

namespace {

model::WaitCode code_of(model::Hold hold) {
  if (hold == model::Hold::kByAdministrator) return model::WaitCode::kHeldByAdministrator;
  return hold == model::Hold::kByPlatform ? model::WaitCode::kHeldByPlatform
                                          : model::WaitCode::kHeldByUser;
}

// Null: it asks for none that is there.
const model::Reservation* own_reservation(const controller::Snapshot& snapshot,
                                          const model::JobSpec& spec) {
  if (snapshot.reservations == nullptr) return nullptr;
  return snapshot.reservations->find(spec.request.reservation);
}

void tell_own(const model::Reservation& own, const model::Occurrence& when,
              model::WaitReason& reason) {
  reason.code = model::WaitCode::kReserved;
  reason.reservation = own.name;
  reason.is_own_reservation = true;
  reason.reservation_begin = when.begin;
  reason.reservation_end = when.end;
}

void explain_dependency(const controller::Snapshot& snapshot, const model::Dependency& dependency,
                        model::WaitReason& reason) {
  reason.code = model::WaitCode::kDependency;
  reason.waits_for = dependency;
  if (dependency.kind == model::DependencyKind::kSingleton) return;
  const std::uint64_t id = dependency.on.job.value;
  if (dependency.on.whole_array) {
    if (const auto* array = snapshot.arrays.find(id)) reason.target = array->outcome;
  } else if (const auto* target = snapshot.jobs.find(id)) {
    reason.target_state = target->state;
    reason.blocked_by = target->id;
  }
}

// A job of a reservation waits for that to begin, unless it is to begin even later.
void explain_own_reservation(const controller::Snapshot& snapshot, const model::JobSpec& spec,
                             model::WaitReason& reason) {
  const model::Reservation* own = own_reservation(snapshot, spec);
  const auto when = own == nullptr ? std::nullopt : occurrence_at(*own, spec.begin);
  if (when && when->begin == spec.begin) tell_own(*own, *when, reason);
}

}  // namespace

model::WaitReason explain_held(const model::Job& job) {
  model::WaitReason reason;
  reason.code = code_of(job.hold);
  if (reason.code != model::WaitCode::kHeldByPlatform) return reason;
  if (job.attempts.empty()) {
    reason.held_for = model::HeldFor::kRepair;
  } else if (job.attempts.back().reason == model::EndReason::kEnvironmentLost) {
    reason.held_for = model::HeldFor::kEnvironment;
  }
  return reason;
}

model::WaitReason explain_pending(const controller::Snapshot& snapshot, const model::Job& job) {
  model::WaitReason reason;
  reason.code = model::WaitCode::kBackoff;
  if (!job.waits_for.empty()) {
    explain_dependency(snapshot, job.waits_for.front(), reason);
    return reason;
  }
  const bool is_time_to_come = job.eligible_at > snapshot.at;
  if (is_time_to_come && job.eligible_at == job.spec->begin) {
    reason.code = model::WaitCode::kBeginTime;
    reason.not_before = job.spec->begin;
    explain_own_reservation(snapshot, *job.spec, reason);
    return reason;
  }
  const auto* array = job.is_member() ? snapshot.arrays.find(job.array_id.value) : nullptr;
  if (!is_time_to_come && array != nullptr && array->limit != 0 && !model::holds_resources(job)) {
    reason.code = model::WaitCode::kArrayLimit;
    reason.array_id = array->id;
    reason.array_limit = array->limit;
  }
  return reason;
}

model::WaitReason explain_hold(const controller::Snapshot& snapshot,
                               const model::PreemptionHold& hold) {
  model::WaitReason reason;
  reason.code = model::WaitCode::kPreempting;
  for (const model::AttemptId id : hold.victims) {
    const model::Job* victim = snapshot.jobs.find(id.job.value);
    const bool is_there =
        victim != nullptr && model::holds_resources(victim->attempts.at(id.attempt - 1).state);
    if (is_there) reason.stopping.push_back(id.job);
  }
  return reason;
}

bool explain_next_occurrence(const controller::Snapshot& snapshot, const model::JobSpec& spec,
                             model::WaitReason& reason) {
  const model::Reservation* own = own_reservation(snapshot, spec);
  if (own == nullptr) return false;
  const base::Duration needed =
      model::longest_limit(spec.request, spec.time_limit) + snapshot.policy->stop_grace;
  const auto when = occurrence_with_room(*own, snapshot.at, needed);
  if (!when || when->begin <= snapshot.at) return false;
  tell_own(*own, *when, reason);
  return true;
}

}  // namespace gpu_platform::views
