#include "controller/judge/timers.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/parse.h"
#include "controller/job_budget.h"
#include "controller/judge/budgets.h"
#include "controller/quota_use.h"
#include "controller/use.h"
#include "model/job_spec.h"

namespace gpu_platform::controller {

using model::Job;

namespace {

model::Event cancelled(model::JobId id, model::EndReason reason, std::string detail) {
  return model::JobEnded{id, model::JobTrigger::kCancel, reason, {}, std::move(detail)};
}

// Returns when the next job becomes overdue; nothing while no job waits.
std::optional<base::Instant> overdue_at(const State& state) {
  const auto turn = state.books->starvation_queue.next();
  const base::Duration after = state.policy->overdue_after;
  if (!turn || after == base::Duration()) return std::nullopt;
  return turn->since + after;
}

// An attempt that was let in before others by its prediction and is still there.
model::Event event_of(const scheduling::Yield& yield) {
  if (!yield.to.valid()) return model::YieldPutOff{yield.attempt, yield.yields_at};
  return model::StopRequested{yield.attempt, model::EndReason::kPreempted, false,
                              fmt::format("job {}", yield.to.value), yield.to};
}

// As StartRequested has it.
std::string price_class_of(const State& state, const model::Allocation& allocation) {
  std::vector<model::CapacityClass> classes;
  for (const auto& part : allocation.nodes) {
    const model::CapacityClass one = state.nodes.find(part.node.value)->capacity;
    if (std::ranges::find(classes, one) == classes.end()) classes.push_back(one);
  }
  std::string text;
  for (const model::CapacityClass one : classes) {
    if (!text.empty()) text += ',';
    text += to_string(one);
  }
  std::ranges::replace(text, '-', '_');
  return text;
}

model::Event event_of(const State& state, const scheduling::Start& start) {
  const Job* job = find_job(state, start.job);
  CHECK(job != nullptr && job->state == model::JobState::kQueued &&
        !start.allocation.nodes.empty());
  std::string unpaid = why_unpaid(state, *job, start.allocation, state.at);
  if (!unpaid.empty()) return cancelled(start.job, model::EndReason::kBudget, std::move(unpaid));
  const model::Node* node = state.nodes.find(start.allocation.nodes.front().node.value);
  const auto number = static_cast<std::uint32_t>(job->attempts.size() + 1);
  return model::StartRequested{{start.job, number}, start.allocation,
                               start.why,           price_class_of(state, start.allocation),
                               node->boot_id,       start.passed,
                               start.yields_at};
}

}  // namespace

std::optional<model::Event> next_unstartable(const State& state, base::Instant now) {
  if (!state.admission_gates.hopeless().empty()) {
    const model::JobId id = *state.admission_gates.hopeless().begin();
    return cancelled(id, model::EndReason::kDependencyFailed,
                     find_job(state, id)->dependency_failure);
  }
  const AdmissionGates::Times& times = state.admission_gates.last_starts();
  if (times.empty() || times.begin()->first >= now) return std::nullopt;
  const model::JobId id = times.begin()->second;
  const model::JobSpec& spec = *find_job(state, id)->spec;
  const base::Instant for_deadline = model::last_start_for_deadline(spec);
  if (for_deadline.is_set() && for_deadline < now) {
    return cancelled(id, model::EndReason::kDeadline,
                     "it could no longer end by its deadline within its time limit");
  }
  return cancelled(id, model::EndReason::kWaitTimeout,
                   fmt::format("it had not started within the {} that it was willing to wait",
                               base::written(spec.wait_timeout)));
}

std::optional<DueJob> next_due(const State& state, const DueJob& after, base::Instant now) {
  const AdmissionGates::Times& times = state.admission_gates.becoming_eligible();
  const auto next = times.upper_bound(after);
  if (next == times.end() || next->first > now) return std::nullopt;
  return *next;
}

std::optional<model::Event> judge_eligible(const State& state, model::JobId id, base::Instant now) {
  const Job* job = find_job(state, id);
  if (job == nullptr || job->eligible_at > now) return std::nullopt;
  if (!state.admission_gates.becoming_eligible().contains({job->eligible_at, id}))
    return std::nullopt;
  if (has_leftovers(*job) || state.admission_gates.goes_after_sister(*job, now)) {
    return std::nullopt;
  }
  return model::JobEligible{id};
}

Events judge_counts(const State& state, base::Instant now) {
  Events events;
  if (const auto count_at = next_count(state); count_at && *count_at <= now) {
    events.push_back(model::UseCounted{});
  }
  if (const auto end = period_end(state); end && *end <= now) {
    events.push_back(
        model::QuotaPeriodBegan{model::begin_of(state.policy->organisation->period, now)});
  }
  if (const auto at = next_budget_count(state); at && *at <= now) {
    events.push_back(model::BudgetsCounted{});
  }
  return events;
}

std::optional<model::Event> next_overdue(const State& state, base::Instant now) {
  const auto at = overdue_at(state);
  if (!at || *at > now) return std::nullopt;
  return model::JobOverdue{state.books->starvation_queue.next()->job};
}

std::vector<model::JobId> holds_to_carry_out(const State& state) {
  std::vector<model::JobId> beneficiaries;
  for (const auto& [job, hold] : state.books->holds.all()) {
    const bool all_told = std::ranges::all_of(
        hold.victims, [&](model::AttemptId id) { return is_told_to_stop(state, id); });
    if (!all_told) beneficiaries.push_back(job);
  }
  return beneficiaries;
}

Events judge_victims(const State& state, model::JobId beneficiary) {
  Events events;
  const model::PreemptionHold* hold = state.books->holds.find(beneficiary);
  if (hold == nullptr) return events;
  for (const model::AttemptId id : hold->victims) {
    if (is_told_to_stop(state, id)) continue;
    events.push_back(model::StopRequested{id, model::EndReason::kPreempted, false,
                                          fmt::format("job {}", beneficiary.value), beneficiary});
  }
  return events;
}

Events events_of(const State& state, const scheduling::Plan& plan) {
  Events events;
  for (const model::JobId job : plan.void_holds)
    events.push_back(model::PreemptionHoldDropped{job});
  for (const scheduling::Start& start : plan.starts) events.push_back(event_of(state, start));
  for (const scheduling::Preemption& each : plan.preemptions) {
    events.push_back(model::PreemptionDecided{each.job, each.held, each.victims, each.rule});
  }
  for (const scheduling::Yield& each : plan.yields) events.push_back(event_of(each));
  return events;
}

std::optional<base::Instant> next_wakeup(const State& state, base::Instant advanced_to,
                                         std::optional<base::Instant> look_again_at) {
  constexpr base::Duration kNextInstant = base::nanoseconds(1);
  if (!holds_to_carry_out(state).empty()) return advanced_to + kNextInstant;
  std::optional<base::Instant> wakeup = next_count(state);
  const auto consider = [&wakeup](base::Instant at) { wakeup = std::min(wakeup.value_or(at), at); };
  if (look_again_at) consider(*look_again_at);
  const AdmissionGates::Times& times = state.admission_gates.becoming_eligible();
  const auto next = times.upper_bound({advanced_to, model::JobId(UINT64_MAX)});
  if (next != times.end()) consider(next->first);
  const AdmissionGates::Times& last_starts = state.admission_gates.last_starts();
  if (!last_starts.empty()) consider(last_starts.begin()->first + kNextInstant);
  for (const auto& [name, reservation] : state.books->reservations.all()) consider(reservation.end);
  if (const auto token = state.token_index.next_to_expire()) consider(token->first);
  if (const auto end = state.taint_ends.next()) consider(end->at);
  // Another period lets jobs start that wait for its GPU-hours.
  const auto end = state.books->queue.empty() ? std::nullopt : period_end(state);
  if (end) consider(*end);
  if (const auto at = next_budget_count(state)) consider(*at);
  if (const auto overdue = overdue_at(state)) {
    consider(std::max(*overdue, advanced_to + kNextInstant));
  }
  return wakeup;
}

}  // namespace gpu_platform::controller
