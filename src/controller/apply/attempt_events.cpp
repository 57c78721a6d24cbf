#include "controller/apply/events.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "accounting/attempt_lines.h"
#include "base/check.h"
#include "controller/apply/borrowing.h"
#include "controller/apply/dependents.h"
#include "controller/apply/gpu_clocks.h"
#include "controller/apply/preemption_holds.h"
#include "controller/apply/queue.h"
#include "controller/budget_use.h"
#include "controller/job_budget.h"
#include "controller/quota_use.h"
#include "controller/use.h"
#include "model/job_spec.h"

namespace gpu_platform::controller {

using model::Attempt;
using model::AttemptTrigger;
using model::Job;
using model::JobTrigger;
using model::Node;

namespace {

// Returns whether the attempt ended by itself and well, or at its time limit: an attempt that was
// stopped or failed says nothing of the next.
bool came_to_its_end(const Attempt& attempt) {
  if (!attempt.started_at.is_set() || attempt.exit.lost != model::Lost::kNo) return false;
  if (attempt.reason == model::EndReason::kTimeLimit) return true;
  return attempt.exit.code == 0 && attempt.stop_reason == model::EndReason::kNone &&
         attempt.reason == model::EndReason::kNone;
}

// Returns how long the run would have been at full speed.
base::Duration run_of(const Attempt& attempt) {
  const base::Duration run = std::max(attempt.ended_at - attempt.started_at, base::Duration());
  return scheduling::at_full_speed(run, attempt.allocation.speed);
}

// All GPUs of an allocation are of one type.
std::string gpu_type_of(Application& a, const model::Allocation& allocation) {
  for (const model::NodeAllocation& part : allocation.nodes) {
    if (part.grants.empty()) continue;
    const std::vector<model::Gpu>& gpus = a.node(part.node).gpus;
    const std::uint32_t index = part.grants.front().gpu_index;
    return index < gpus.size() ? gpus[index].info.type : std::string();
  }
  return {};
}

// Compares what was predicted of the start with the start, which is now.
void score_predictions(Application& a, Job& j) {
  if (!j.prediction && !j.early_prediction) return;
  scheduling::PredictionScores scores = *a.state.scores;
  if (j.prediction) scores.add(*j.prediction, a.at);
  if (j.early_prediction) scores.add_early(*j.early_prediction, a.at);
  j.early_prediction.reset();
  a.state.scores = std::move(scores);
}

// Notes the jobs that were stopped for the beneficiary. None of them, nor a job that they had
// stopped, may have it stopped in turn.
void note_stopped_for(Application& a, model::JobId beneficiary, const Job& victim,
                      const Attempt& attempt) {
  Job* j = a.state.jobs.find_mutable(beneficiary.value);
  if (j == nullptr || j->state != model::JobState::kQueued) return;
  const model::PriorityClass own = victim.spec->priority.priority_class;
  const model::PriorityClass above = model::higher(own, attempt.stops_above.value_or(own));
  j->stopped_for_it = model::higher(above, j->stopped_for_it.value_or(above));
  a.state.books.update_waiting(*j);
}

bool is_stopped_by_reclaim(const State& state, const model::StopRequested& event) {
  const model::PreemptionHold* hold = state.books->holds.find(event.stopped_for);
  return hold != nullptr && hold->rule == model::PreemptionRule::kReclaim &&
         std::ranges::binary_search(hold->victims, event.attempt);
}

// The prolog that failed there before succeeds again.
void prolog_did_well(Application& a, const Attempt& attempt) {
  const model::NodeId id = attempt.first_node();
  if (a.state.nodes.find(id.value)->prolog_failed_for.valid()) a.node(id).prolog_failed_for = {};
}

model::GpuHolder holder_of(const model::StartRequested& event, const model::GpuGrant& grant) {
  const model::Tenant& tenant = event.allocation.tenant;
  return {event.attempt, grant.share, grant.memory, {}, grant.mode, tenant.uid, tenant.team};
}

void note_epilog(const model::AttemptReleased& event, const Attempt& attempt, Node& n) {
  if (!event.epilog_failure.empty()) {
    n.epilog_failed_for = event.attempt.job;
  } else if (attempt.started_at.is_set() && attempt.exit.lost == model::Lost::kNo) {
    n.epilog_failed_for = {};
  }
}

// How its GPUs were chosen, where the site places jobs by load.
std::vector<model::GpuChoice> choices_of(const State& state, const model::Allocation& allocation) {
  const model::LoadRules& rules = state.policy->load_rules;
  if (!rules.is_on || model::is_part(allocation)) return {};
  std::vector<model::GpuChoice> choices;
  for (std::size_t place = 0; place < allocation.nodes.size(); ++place) {
    const model::NodeAllocation& part = allocation.nodes[place];
    const Node& node = *state.nodes.find(part.node.value);
    for (const model::GpuGrant& grant : part.grants) {
      const model::Gpu& gpu = node.gpus.at(grant.gpu_index);
      const model::GpuLoad load = gpu.load.value_or(model::GpuLoad{0, gpu.info.memory});
      choices.push_back({static_cast<std::uint32_t>(place), grant.gpu_index,
                         model::availability(load, gpu.info.memory, rules), load});
    }
  }
  return choices;
}

}  // namespace

void apply(Application& a, const model::StartRequested& event) {
  Job& j = a.job(event.attempt.job);
  CHECK(event.attempt.attempt == j.attempts.size() + 1);
  Attempt attempt;
  attempt.number = event.attempt.attempt;
  attempt.why = event.why;
  attempt.allocation = event.allocation;
  attempt.gpu_type = gpu_type_of(a, event.allocation);
  attempt.granted = model::granted_of(event.allocation, a.state.nodes);
  attempt.choices = choices_of(a.state, event.allocation);
  attempt.boot_id = event.boot_id;
  attempt.requested_at = a.at;
  attempt.passed = event.passed;
  attempt.yields_at = event.yields_at;
  score_predictions(a, j);
  if (event.why == model::StartWhy::kPreempted)
    attempt.preempted_jobs = jobs_stopped_for(a.state, j.id);
  const model::PriorityClass own = j.spec->priority.priority_class;
  if (j.stopped_for_it || a.state.books->holds.find(j.id) != nullptr) {
    attempt.stops_above = model::higher(own, j.stopped_for_it.value_or(own));
  }
  j.stopped_for_it.reset();
  attempt.began_overdue = j.overdue_since.is_set();
  attempt.limit_by_budget = limit_by_budget(a.state, j, attempt, a.at);
  attempt.time_limit = time_limit_of(j, attempt);
  move_job(a, j, JobTrigger::kStartRequested);
  j.attempts.push_back(std::move(attempt));
  begin_to_hold(a.state, a.at);
  a.state.held_attempts.insert(event.attempt);
  note_changes(a, a.state.books.put_held(j, j.attempts.back()));
  for (const auto& part : event.allocation.nodes) {
    Node& n = a.node(part.node);
    n.cpus_used += part.cpus;
    n.memory_used += part.memory;
    for (const auto& grant : part.grants) {
      model::Gpu& gpu = n.gpus.at(grant.gpu_index);
      gpu.holders.push_back(holder_of(event, grant));
      std::ranges::sort(gpu.holders, {}, &model::GpuHolder::attempt);
      model::settle(gpu);
      follow_clock(a, n, grant.gpu_index);
    }
    a.state.books.put(n);
  }
}

void apply(Application& a, const model::AttemptStarted& event) {
  Job& j = a.job(event.attempt.job);
  Attempt& attempt = find_attempt(j, event.attempt);
  const bool is_first_start = !model::has_started(j);
  attempt.pid = event.pid;
  attempt.started_at = event.started_at;
  attempt.preflight = event.preflight;
  move_attempt(attempt, AttemptTrigger::kStarted);
  meter(a.state, j, attempt);
  move_job(a, j, JobTrigger::kStarted);
  a.state.books.update_held(j, attempt);
  move_holders(a, event.attempt, attempt);
  j.prolog_failed_on.clear();
  prolog_did_well(a, attempt);
  if (is_first_start) note_first_start(a, j);
}

void apply(Application& a, const model::YieldPutOff& event) {
  Job& j = a.job(event.attempt.job);
  Attempt& attempt = find_attempt(j, event.attempt);
  attempt.yields_at = event.yields_at;
  a.state.books.update_held(j, attempt);
}

void apply(Application& a, const model::StopRequested& event) {
  Job& j = a.job(event.attempt.job);
  Attempt& attempt = find_attempt(j, event.attempt);
  attempt.stop_reason = event.reason;
  attempt.kill_requested = attempt.kill_requested || event.without_grace;
  attempt.by = event.by;
  attempt.is_reclaimed = is_stopped_by_reclaim(a.state, event);
  move_attempt(attempt, AttemptTrigger::kStopRequested);
  move_job(a, j, JobTrigger::kStopRequested);
  a.state.books.update_held(j, attempt);
  if (event.stopped_for.valid()) note_stopped_for(a, event.stopped_for, j, attempt);
}

void apply(Application& a, const model::StepRecorded& event) {
  Attempt& attempt = find_attempt(a.job(event.attempt.job), event.attempt);
  CHECK(model::may_have_processes(attempt.state));
  attempt.steps = with_step(*attempt.steps, event.step);
}

void apply(Application& a, const model::AttemptEnded& event) {
  Job& j = a.job(event.attempt.job);
  Attempt& attempt = find_attempt(j, event.attempt);
  stop_metering(a.state, j, attempt);
  attempt.ended_at = event.ended_at;
  attempt.exit = event.exit;
  attempt.reason = event.reason;
  attempt.detail = event.detail;
  attempt.usage = event.usage;
  end_steps(attempt);
  if (came_to_its_end(attempt)) a.state.books.add_run(*j.spec, run_of(attempt));
  move_attempt(attempt, AttemptTrigger::kEnded);
  meter(a.state, j, attempt);
  a.state.relimited.erase(event.attempt);
  a.state.books.update_held(j, attempt);
  move_holders(a, event.attempt, attempt);
  if (event.reason == model::EndReason::kPrologFailed) {
    a.node(attempt.first_node()).prolog_failed_for = event.attempt.job;
  }
}

void apply(Application& a, const model::AttemptReleased& event) {
  Job& j = a.job(event.attempt.job);
  Attempt& attempt = find_attempt(j, event.attempt);
  stop_metering(a.state, j, attempt);
  const std::size_t lines_before = a.out.ledger.size();
  a.state.admission_gates.leave(j);
  move_attempt(attempt, AttemptTrigger::kReleased);
  a.state.admission_gates.enter(j);
  attempt.released_at = a.at;
  accounting::append_lines({a.state.nodes, *a.state.prices, *a.state.policy}, j, attempt, a.at,
                           a.out.ledger);
  charge(a.state, j, attempt, a.at);
  count_period_use(a.state, j, attempt);
  note_changes(a, a.state.books.erase_held(j, attempt));
  a.state.held_attempts.erase(event.attempt);
  for (const auto& part : attempt.allocation.nodes) {
    Node& n = a.node(part.node);
    CHECK(n.cpus_used >= part.cpus && n.memory_used >= part.memory);
    n.cpus_used -= part.cpus;
    n.memory_used -= part.memory;
    if (&part == &attempt.allocation.nodes.front()) note_epilog(event, attempt, n);
    for (const auto& grant : part.grants) {
      model::Gpu& gpu = n.gpus.at(grant.gpu_index);
      CHECK(std::erase_if(gpu.holders, [&](const model::GpuHolder& h) {
              return h.attempt == event.attempt;
            }) == 1);
      model::settle(gpu);
      follow_clock(a, n, grant.gpu_index);
    }
    a.state.books.put(n);
  }
  settle_budgets(a.state, *j.spec, std::span(a.out.ledger).subspan(lines_before), a.at);
  depart_if_done(a, j);
}

}  // namespace gpu_platform::controller
