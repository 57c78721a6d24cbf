#include "controller/apply/events.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <utility>

#include "base/check.h"
#include "controller/apply/attempt_limits.h"
#include "controller/apply/borrowing.h"
#include "controller/apply/dependents.h"
#include "controller/apply/gpu_clocks.h"
#include "controller/apply/preemption_holds.h"
#include "controller/apply/queue.h"
#include "controller/budget_use.h"
#include "controller/job_budget.h"
#include "controller/use.h"
#include "model/job_spec.h"

namespace gpu_platform::controller {

using model::Attempt;
using model::Job;
using model::JobState;
using model::JobTrigger;

namespace {

// The state in which a submission begins.
JobState first_state(const model::JobSubmitted& event, const Job& fresh, base::Instant now) {
  if (event.hold != model::Hold::kNone) return JobState::kHeld;
  const bool is_limited = event.spec->array && event.spec->array->limit != 0;
  const bool is_gated = is_limited || !fresh.waits_for.empty() ||
                        !event.dependency_failure.empty() || event.spec->begin > now;
  return is_gated ? JobState::kPending : JobState::kQueued;
}

// The attempt that a job failed with was not retried, so JobRequeued has not counted it.
void count_last_attempt(Job& j) {
  if (j.attempts.empty()) return;
  const Attempt& last = j.attempts.back();
  if (last.reason == model::EndReason::kGpuFault) return;  // neither: it is innocent
  const bool by_itself = last.exit.lost == model::Lost::kNo &&
                         last.reason != model::EndReason::kLaunchFailed &&
                         last.reason != model::EndReason::kEnvironmentLost;
  (by_itself || last.exit.code.has_value() ? j.failures : j.losses) += 1;
}

bool is_first_turn_of(const Job& j, const model::Turn& turn) {
  return turn.of == j.id && turn.since == j.submitted_at;
}

// A person who takes a running job back does not get its GPUs before those that wait for its end.
void begin_new_turn(Application& a, Job& j) {
  j.turn = model::Turn{j.id, a.at, j.spec->priority.number, model::total_gpus(j.spec->request)};
}

// Its way to this end is not known, so no transition leads there. A job in the archive held nothing
// any more.
void end_as_archived(Application& a, Job& j, const model::ArchivedEnd& end) {
  const model::JobId id = j.id;
  std::vector<model::AttemptId> held;
  for (Attempt& attempt : j.attempts) {
    if (!model::holds_resources(attempt.state)) continue;
    held.push_back({id, attempt.number});
    if (!model::may_have_processes(attempt.state)) continue;
    attempt.ended_at = end.ended_at;
    end_steps(attempt);
    move_attempt(attempt, model::AttemptTrigger::kEnded);
    a.state.relimited.erase(held.back());
    a.state.books.update_held(j, attempt);
    move_holders(a, held.back(), attempt);
  }
  if (!model::is_ended(j.state)) {
    j.ended_at = end.ended_at;
    j.hold = model::Hold::kNone;
    leave_indices(a, j);
    j.state = end.state;
    enter_indices(a, j);
    follow_end(a, j);
  }
  for (const model::AttemptId attempt : held) apply(a, model::AttemptReleased{attempt, {}});
}

}  // namespace

void apply(Application& a, const model::JobSubmitted& event) {
  Job fresh;
  fresh.spec = event.spec;
  fresh.hold = event.hold;
  fresh.submitted_at = a.at;
  note_account(a.state, *event.spec);
  fresh.eligible_at = event.spec->begin;
  // A member waits for the member with its index among those of another array that are still to
  // come.
  std::map<std::uint32_t, model::Dependency> corresponding;
  for (const model::Dependency& dependency : event.waits_for) {
    if (dependency.kind != model::DependencyKind::kAfterCorr) {
      fresh.waits_for.push_back(dependency);
    } else {
      corresponding.emplace(a.job(dependency.on.job).array_index, dependency);
    }
  }
  fresh.dependency_failure = event.dependency_failure;
  std::uint64_t count = 1;
  if (const auto& array = event.spec->array) {
    count = member_count(*array);
    fresh.array_id = event.job;
    a.state.arrays.put(
        event.job.value,
        {event.job, count, count, array->limit, {.open = count, .unstarted = count}});
    a.state.admission_gates.set_limit(event.job, array->limit);
  }
  a.state.load.enter(*event.spec, count);
  for (std::uint64_t position = 0; position < count; ++position) {
    Job member = fresh;
    member.id = model::JobId(event.job.value + position);
    if (event.spec->array) {
      member.array_index = index_at(*event.spec->array, position);
      const auto own = corresponding.find(member.array_index);
      if (own != corresponding.end()) member.waits_for.push_back(own->second);
    }
    member.state = first_state(event, member, a.at);
    enter_indices(a, a.state.jobs.put(member.id.value, std::move(member)));
  }
  a.state.last_job_id = event.job.value + count - 1;
  free_singleton(a, AdmissionGates::name_of(*event.spec));
  if (!event.spec->request_id.empty()) {
    const std::pair key{event.spec->user, event.spec->request_id};
    a.state.requests.insert_or_assign(key, RequestEntry{event.job, {}});
  }
}

void apply(Application& a, const model::JobChanged& event) {
  Job& j = a.job(event.job);
  a.state.admission_gates.leave(j);
  const base::Instant former_begin = j.spec->begin;
  const AdmissionGates::NameKey former_name = AdmissionGates::name_of(*j.spec);
  auto spec = std::make_shared<model::JobSpec>(*j.spec);
  event.to.apply_to(*spec);
  if (event.dependencies) {
    j.waits_for = event.dependencies->waits_for;
    j.dependency_failure = event.dependencies->failure;
  }
  for (Attempt& attempt : j.attempts) {
    if (!model::holds_resources(attempt.state)) continue;
    stop_metering(a.state, j, attempt);
    note_changes(a, a.state.books.discount(j, attempt));
    attempt.is_borrowed = false;
  }
  a.state.load.leave(*j.spec);
  j.spec = std::move(spec);
  a.state.load.enter(*j.spec);
  if (changes_limit(event) && model::is_active(j.state)) {
    if (event.to.get(&model::JobSpec::budget)) limit_anew(a, j, j.attempts.back());
    a.state.relimited.insert({j.id, j.attempts.back().number});
  }
  const base::Instant* const begin = event.to.get(&model::JobSpec::begin);
  if (begin && !model::is_active(j.state) && j.state != JobState::kQueued) {
    const bool waited_for_it = j.eligible_at == former_begin;
    j.eligible_at = waited_for_it ? *begin : std::max(j.eligible_at, *begin);
  }
  a.state.admission_gates.enter(j);
  postpone_if_gated(a, j);
  if (AdmissionGates::name_of(*j.spec) != former_name) {
    free_singleton(a, former_name);
    free_singleton(a, AdmissionGates::name_of(*j.spec));
  }
  for (const Attempt& attempt : j.attempts) {
    if (!model::holds_resources(attempt.state)) continue;
    meter(a.state, j, attempt);
    note_changes(a, a.state.books.count(j, attempt));
    a.state.books.update_held(j, attempt);
  }
  if (j.turn && event.to.get(&model::JobSpec::priority)) j.turn->number = j.spec->priority.number;
  if (j.turn && j.turn->of == j.id) j.turn->gpus = model::total_gpus(j.spec->request);
  if (j.state == JobState::kQueued) a.state.books.update_waiting(j);
  // Its preemption hold and its predictions were for another request.
  if (event.to.changes_request()) {
    drop_hold(a, j.id);
    j.prediction.reset();
    j.early_prediction.reset();
  }
  drop_holds_that_outrank_nobody(a);
}

void apply(Application& a, const model::JobsRaised& event) {
  std::vector<model::Turn> turns;
  std::vector<model::JobId> order;
  for (const model::JobId id : event.in_order) turns.push_back(model::turn_of(a.job(id)));
  const auto is_raised = [&](model::JobId id) {
    return std::ranges::binary_search(event.raised, id);
  };
  std::ranges::copy_if(event.in_order, std::back_inserter(order), is_raised);
  std::ranges::copy_if(event.in_order, std::back_inserter(order), std::not_fn(is_raised));
  for (std::size_t i = 0; i < order.size(); ++i) {
    Job& j = a.job(order[i]);
    CHECK(j.state == JobState::kQueued);
    j.turn = turns[i];
    if (is_first_turn_of(j, turns[i])) j.turn.reset();
    a.state.books.update_waiting(j);
  }
}

void apply(Application& a, const model::JobEligible& event) {
  move_job(a, a.job(event.job), JobTrigger::kBecameEligible);
}

void apply(Application& a, const model::JobHoldChanged& event) {
  Job& j = a.job(event.job);
  j.hold = event.hold;
  if (event.hold == model::Hold::kNone) j.prolog_failed_on.clear();
  if (model::is_active(j.state)) return;
  const bool is_held = j.state == JobState::kHeld;
  if (event.hold == model::Hold::kNone) {
    if (is_held) move_job(a, j, JobTrigger::kRelease);
  } else if (!is_held) {
    move_job(a, j, JobTrigger::kHold);
  }
}

void apply(Application& a, const model::JobOverdue& event) {
  Job& j = a.job(event.job);
  CHECK(j.state == JobState::kQueued && !j.overdue_since.is_set());
  a.state.books.erase_waiting(j);
  j.overdue_since = a.at;
  a.state.books.put_waiting(j);
}

void apply(Application& a, const model::StartPredicted& event) {
  Job& j = a.job(event.job);
  CHECK(j.state == JobState::kQueued);
  std::optional<model::StartPrediction>& prediction =
      event.is_early ? j.early_prediction : j.prediction;
  prediction = event.prediction;
  prediction->made_at = a.at;
}

void apply(Application& a, const model::PreemptionDecided& event) {
  a.state.books.put(model::PreemptionHold{event.job, event.held, event.victims, a.at, event.rule});
  follow_clocks(a, event.held);
}

void apply(Application& a, const model::PreemptionHoldDropped& event) {
  drop_hold(a, event.job);
}

void apply(Application& a, const model::JobRequeued& event) {
  Job& j = a.job(event.job);
  j.hardware_failures = event.hardware_failed ? j.hardware_failures + 1 : 0;
  j.neighbour_faults = event.neighbour_failed ? j.neighbour_faults + 1 : 0;
  for (const std::string& gpu : event.avoid_gpus) {
    if (std::ranges::find(j.avoid_gpus, gpu) == j.avoid_gpus.end()) j.avoid_gpus.push_back(gpu);
  }
  if (event.prolog_failed) {
    j.prolog_failed_on.push_back(j.attempts.back().first_node());
  } else if (event.preempted) {
    // A cluster that evicts it makes room for no job of ours.
    if (j.attempts.back().stop_reason == model::EndReason::kPreempted) ++j.preemptions;
  } else if (!event.asked_for && !event.hardware_failed && !event.neighbour_failed) {
    (event.counts_as_failure ? j.failures : j.losses) += 1;
  }
  const bool by_person =
      !j.attempts.empty() && j.attempts.back().stop_reason == model::EndReason::kRequeuedBy;
  if (by_person) begin_new_turn(a, j);
  if (event.holds && j.hold == model::Hold::kNone) j.hold = model::Hold::kByPlatform;
  j.eligible_at = event.eligible_at;
  move_job(a, j, event.preempted ? JobTrigger::kPreempt : JobTrigger::kRequeue);
  if (j.hold != model::Hold::kNone) move_job(a, j, JobTrigger::kHold);
}

void apply(Application& a, const model::JobEnded& event) {
  Job& j = a.job(event.job);
  // An attempt that ended while the daemon was away ended then, and its job with it.
  j.ended_at = model::is_active(j.state) ? j.attempts.back().ended_at : a.at;
  j.reason = event.reason;
  j.by = event.by;
  j.detail = event.detail;
  j.hold = model::Hold::kNone;
  if (event.how == JobTrigger::kFail) count_last_attempt(j);
  move_job(a, j, event.how);
  follow_end(a, j);
}

void apply(Application& a, const model::StoreRepaired& event) {
  a.state.last_job_id = std::max(a.state.last_job_id, event.last_job_id);
  for (const model::ArchivedEnd& end : event.ended) {
    Job* j = a.state.jobs.find_mutable(end.job.value);
    if (j != nullptr && model::is_ended(end.state)) end_as_archived(a, *j, end);
  }
  // The missing events may have revoked any of them: a credential that was taken back must not hold
  // again.
  a.state.tokens = {};
  a.state.token_index = {};
}

}  // namespace gpu_platform::controller
