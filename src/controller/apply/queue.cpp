#include "controller/apply/queue.h"

#include <utility>

#include "base/check.h"
#include "controller/apply/dependents.h"
#include "controller/apply/preemption_holds.h"
#include "model/job_spec.h"
#include "scheduling/trial.h"

namespace gpu_platform::controller {

using model::Job;
using model::JobState;

namespace {

std::uint64_t* counter_of(Counts& counts, JobState s) {
  if (s == JobState::kPending || s == JobState::kPreempted) return &counts.pending;
  if (s == JobState::kQueued) return &counts.queued;
  if (s == JobState::kHeld) return &counts.held;
  if (s == JobState::kSuspended) return &counts.suspended;
  return model::is_active(s) ? &counts.active : nullptr;
}

void forget_oldest_requests(State& state, const std::string& user) {
  while (state.expiring_requests.count_of(user) > kMaxEndedRequests) {
    const auto [expires, oldest] = state.expiring_requests.first_of(user);
    state.requests.erase(oldest);
    state.expiring_requests.erase(expires, oldest);
  }
}

void start_request_expiry(Application& a, const Job& j) {
  if (j.spec->request_id.empty()) return;
  State& state = a.state;
  const model::JobId answered = j.is_member() ? j.array_id : j.id;
  const bool is_last = !j.is_member() || state.arrays.find(j.array_id.value)->outcome.open == 0;
  const std::pair key{j.spec->user, j.spec->request_id};
  const auto entry = state.requests.find(key);
  if (!is_last || entry == state.requests.end() || entry->second.job != answered) return;
  entry->second.expires = a.at + state.policy->request_id_lifetime;
  state.expiring_requests.put(entry->second.expires, key);
  forget_oldest_requests(state, key.first);
}

}  // namespace

void move_job(Application& a, Job& j, model::JobTrigger trigger) {
  const auto to = model::next(j.state, trigger);
  CHECK(to.has_value());
  leave_indices(a, j);
  j.state = *to;
  enter_indices(a, j);
}

void leave_indices(Application& a, const Job& j) {
  if (scheduling::counts_as_waiting(j.state)) a.state.load.end_waiting(j.spec->uid);
  if (std::uint64_t* counter = counter_of(a.state.counts, j.state)) --*counter;
  a.state.books.erase_waiting(j);
  if (j.state == JobState::kQueued) drop_hold(a, j.id);
  a.state.admission_gates.leave(j);
}

void enter_indices(Application& a, Job& j) {
  if (scheduling::counts_as_waiting(j.state)) a.state.load.begin_waiting(j.spec->uid);
  if (std::uint64_t* counter = counter_of(a.state.counts, j.state)) ++*counter;
  j.overdue_since = {};
  if (j.state == JobState::kQueued) {
    j.prediction.reset();
    j.early_prediction.reset();
    j.eligible_at = a.at;
  }
  a.state.books.put_waiting(j);
  a.state.admission_gates.enter(j);
}

void postpone_if_gated(Application& a, Job& j) {
  const bool is_gated =
      !j.waits_for.empty() || !j.dependency_failure.empty() || j.spec->begin > a.at;
  if (j.state != JobState::kQueued || !is_gated) return;
  j.eligible_at = j.spec->begin;
  move_job(a, j, model::JobTrigger::kPostpone);
}

void follow_end(Application& a, Job& j) {
  note_end_of_member(a, j);
  resolve_dependents(a, {j.id, false});
  free_singleton(a, AdmissionGates::name_of(*j.spec));
  start_request_expiry(a, j);
  depart_if_done(a, j);
}

void depart_if_done(Application& a, Job& j) {
  if (!model::is_ended(j.state) || model::holds_resources(j)) return;
  const model::JobId id = j.id;
  const model::JobId array = j.array_id;
  a.state.load.leave(*j.spec);
  a.out.departed.push_back(std::move(j));
  a.state.jobs.erase(id.value);
  if (!array.valid() || --a.state.arrays.find_mutable(array.value)->members > 0) return;
  a.state.arrays.erase(array.value);
  a.state.admission_gates.erase_array(array);
}

}  // namespace gpu_platform::controller
