#include "controller/budget_use.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "accounting/charge.h"
#include "base/check.h"
#include "model/job_spec.h"
#include "scheduling/quota/budgets.h"

namespace gpu_platform::controller {

using accounting::ExactCost;
using model::Budget;
using model::BudgetKey;
using model::BudgetLevel;
using model::BudgetState;
using model::BudgetStates;
using model::Millis;

namespace {

constexpr Millis kForEver = std::numeric_limits<Millis>::max();

accounting::MeterTerms terms_of(const State& state) {
  return {state.nodes, *state.prices, *state.policy};
}

base::Instant period_end_of(const BudgetState& budget) {
  return model::end_of(budget.budget.period, budget.period_begin);
}

// The least amount that is of the level.
ExactCost least_of(const Budget& budget, BudgetLevel level) {
  const ExactCost amount(budget.amount);
  if (level == BudgetLevel::kSpent) return amount;
  return ExactCost((amount.units() / 5) * 4);  // an amount is a multiple of five units
}
static_assert(accounting::kUnitsPerMicro % 5 == 0);

BudgetLevel level_of(const Budget& budget, ExactCost spent) {
  if (spent >= least_of(budget, BudgetLevel::kSpent)) return BudgetLevel::kSpent;
  return spent >= least_of(budget, BudgetLevel::kNearly) ? BudgetLevel::kNearly
                                                         : BudgetLevel::kWithin;
}

BudgetMeter empty_meter(const BudgetState& budget) {
  return {model::millis_of(budget.period_begin), model::millis_of(period_end_of(budget))};
}

// When its level, its period or its override is to change next.
base::Instant next_of(const BudgetState& state, const BudgetMeter& meter,
                      const model::PriceBook& prices) {
  base::Instant next = period_end_of(state);
  if (state.budget.over.until.is_set()) next = std::min(next, state.budget.over.until);
  if (state.level == BudgetLevel::kSpent) return next;
  const BudgetLevel above =
      state.level == BudgetLevel::kWithin ? BudgetLevel::kNearly : BudgetLevel::kSpent;
  const auto at = meter.reaches(prices, least_of(state.budget, above) - ExactCost(state.settled));
  return at ? std::min(next, base::Instant(*at * 1'000'000)) : next;
}

// Calls change(BudgetMeter&, const BudgetState&) for each budget that the job counts against.
template <class Change>
void change_meters(State& state, const model::JobSpec& spec, const Change& change) {
  for (const BudgetState* budget :
       scheduling::budgets_of(*state.books->budgets, *state.policy->organisation, spec)) {
    BudgetMeter& meter = state.budget_meters.at(budget->budget.key);
    change(meter);
    meter.next = next_of(*budget, meter, *state.prices);
  }
}

// Begins the period of that time if the budget's is over.
void begin_period_if_due(BudgetState& state, base::Instant at) {
  const base::Instant begin = model::begin_of(state.budget.period, at);
  if (state.period_begin == begin) return;
  state.period_begin = begin;
  state.settled = {};
}

void end_override_if_due(BudgetState& state, base::Instant at) {
  const bool is_over = state.budget.over.until.is_set() && state.budget.over.until <= at;
  if (is_over) state.budget.over = {};
}

void note_spent(BudgetState& state, ExactCost spent, base::Instant at) {
  const BudgetLevel level = level_of(state.budget, spent);
  if (level != state.level) state.level_since = at;
  state.level = level;
  state.counted = spent.floor();
}

// Takes over budgets whose periods, amounts or overrides have changed, and counts all.
void put_counted(State& state, BudgetStates budgets, base::Instant at) {
  for (auto& [key, budget] : budgets) {
    begin_period_if_due(budget, at);
    end_override_if_due(budget, at);
  }
  state.books.put(budgets);
  state.budget_meters = meters_of(state);
  for (auto& [key, budget] : budgets) note_spent(budget, spent_of(state, budget, at), at);
  for (auto& [key, meter] : state.budget_meters) {
    meter.next = next_of(budgets.at(key), meter, *state.prices);
  }
  if (budgets != *state.books->budgets) state.books.put(std::move(budgets));
}

// What is spent of the former one counts for the new one if its period began no earlier, so that
// all of it lies in the new period too.
BudgetState successor(const Budget& budget, const BudgetState* former, base::Instant at) {
  BudgetState next;
  next.budget = budget;
  next.period_begin = model::begin_of(budget.period, at);
  next.level_since = at;
  if (former == nullptr) return next;
  if (former->period_begin >= next.period_begin) next.settled = former->settled;
  next.level = former->level;
  next.level_since = former->level_since;
  return next;
}

const BudgetState* find_budget_state(const State& state, const BudgetKey& key) {
  const auto found = state.books->budgets->find(key);
  return found == state.books->budgets->end() ? nullptr : &found->second;
}

const Budget* configured(const State& state, const BudgetKey& key) {
  const auto found = std::ranges::find(state.policy->budgets, key, &Budget::key);
  return found == state.policy->budgets.end() ? nullptr : &*found;
}

bool counts_for(const model::Organisation& organisation, const BudgetKey& key,
                const model::LedgerCorrected& correction) {
  switch (key.holder) {
    case model::QuotaHolder::kUser:
      return key.name == correction.user;
    case model::QuotaHolder::kProject:
      return key.name == correction.project;
    case model::QuotaHolder::kTeam:
      break;
  }
  const model::Team* team = model::find_team(organisation, correction.team);
  while (team != nullptr && team->name != key.name) {
    team = team->parent.empty() ? nullptr : model::find_team(organisation, team->parent);
  }
  return team != nullptr;
}

// Adds to what budgets have spent in their present periods. `charge(key, period's begin)` returns
// how much.
template <class Charge>
void settle(State& state, const std::vector<const BudgetState*>& touched, const Charge& charge,
            base::Instant at) {
  std::vector<BudgetKey> keys;
  for (const BudgetState* budget : touched) keys.push_back(budget->budget.key);
  if (keys.empty()) return;
  BudgetStates budgets = *state.books->budgets;
  bool begins_period = false;
  for (const BudgetKey& key : keys) {
    BudgetState& budget = budgets.at(key);
    const base::Instant former = budget.period_begin;
    begin_period_if_due(budget, at);
    begins_period |= budget.period_begin != former;
    const ExactCost sum =
        ExactCost(budget.settled) + charge(key, model::millis_of(budget.period_begin));
    budget.settled = sum.stored();
  }
  if (begins_period) return put_counted(state, std::move(budgets), at);
  for (const BudgetKey& key : keys) {
    BudgetState& budget = budgets.at(key);
    BudgetMeter& meter = state.budget_meters.at(key);
    note_spent(budget, spent_of(state, budget, at), at);
    meter.next = next_of(budget, meter, *state.prices);
  }
  state.books.put(std::move(budgets));
}

}  // namespace

BudgetMeters meters_of(const State& state) {
  BudgetMeters meters;
  const BudgetStates& budgets = *state.books->budgets;
  if (budgets.empty()) return meters;
  for (const auto& [key, budget] : budgets) meters.emplace(key, empty_meter(budget));
  for (const model::AttemptId id : state.held_attempts) {
    const model::Job* job = state.jobs.find(id.job.value);
    CHECK(job != nullptr);
    for (const BudgetState* budget :
         scheduling::budgets_of(budgets, *state.policy->organisation, *job->spec)) {
      meters.at(budget->budget.key).add(terms_of(state), *job, job->attempts.at(id.attempt - 1));
    }
  }
  for (auto& [key, meter] : meters) meter.next = next_of(budgets.at(key), meter, *state.prices);
  return meters;
}

void stop_metering(State& state, const model::Job& job, const model::Attempt& attempt) {
  change_meters(state, *job.spec,
                [&](BudgetMeter& meter) { meter.remove(terms_of(state), job, attempt); });
}

void meter(State& state, const model::Job& job, const model::Attempt& attempt) {
  change_meters(state, *job.spec,
                [&](BudgetMeter& meter) { meter.add(terms_of(state), job, attempt); });
}

void settle_budgets(State& state, const model::JobSpec& spec,
                    std::span<const model::LedgerLine> lines, base::Instant at) {
  const auto charge = [&](const BudgetKey&, Millis from) {
    ExactCost sum;
    for (const model::LedgerLine& line : lines) {
      if (line.kind != model::LedgerKind::kHeld) continue;
      sum += accounting::charge_of(line, *state.prices, from, kForEver);
    }
    return sum;
  };
  settle(state, scheduling::budgets_of(*state.books->budgets, *state.policy->organisation, spec),
         charge, at);
}

void correct_budgets(State& state, const model::LedgerCorrected& correction, base::Instant at) {
  std::vector<const BudgetState*> touched;
  for (const auto& [key, budget] : *state.books->budgets) {
    if (counts_for(*state.policy->organisation, key, correction)) touched.push_back(&budget);
  }
  settle(
      state, touched, [&](const BudgetKey&, Millis) { return ExactCost(correction.amount); }, at);
}

void count_budgets(State& state, base::Instant at) {
  if (!state.books->budgets->empty()) put_counted(state, *state.books->budgets, at);
}

void follow_budgets(State& state, base::Instant at) {
  BudgetStates budgets;
  for (const auto& [key, budget] : *state.books->budgets) {
    if (!budget.budget.set_by.empty()) budgets.emplace(key, budget);
  }
  for (const Budget& budget : state.policy->budgets) {
    if (budgets.contains(budget.key)) continue;
    const BudgetState* former = find_budget_state(state, budget.key);
    BudgetState next = successor(budget, former, at);
    if (former != nullptr) next.budget.over = former->budget.over;
    budgets.emplace(budget.key, std::move(next));
  }
  if (budgets.empty() && state.books->budgets->empty()) return;
  put_counted(state, std::move(budgets), at);
}

void meter_anew(State& state, base::Instant at) {
  count_budgets(state, at);
}

void put_budget(State& state, const Budget& budget, base::Instant at) {
  BudgetStates budgets = *state.books->budgets;
  budgets[budget.key] = successor(budget, find_budget_state(state, budget.key), at);
  put_counted(state, std::move(budgets), at);
}

void remove_budget(State& state, const BudgetKey& key, base::Instant at) {
  BudgetStates budgets = *state.books->budgets;
  const auto place = budgets.find(key);
  CHECK(place != budgets.end());
  if (const Budget* budget = configured(state, key)) {
    place->second = successor(*budget, find_budget_state(state, key), at);
  } else {
    budgets.erase(place);
  }
  put_counted(state, std::move(budgets), at);
}

ExactCost spent_of(const State& state, const BudgetState& budget, base::Instant at) {
  return ExactCost(budget.settled) +
         state.budget_meters.at(budget.budget.key).cost(*state.prices, model::millis_of(at));
}

std::vector<std::string> wrong_budgets(const State& state) {
  std::vector<std::string> found;
  for (const auto& [key, budget] : *state.books->budgets) {
    // It is due, and will be counted. That an attempt had ended earlier than was known may take
    // back a little that was counted.
    if (state.budget_meters.at(key).next <= state.at) continue;
    const BudgetLevel level = level_of(budget.budget, spent_of(state, budget, state.at));
    if (level <= budget.level) continue;
    found.push_back(fmt::format("budget: {} {} is {} and counts as {}", to_string(key.holder),
                                key.name, to_string(level), to_string(budget.level)));
  }
  return found;
}

}  // namespace gpu_platform::controller
