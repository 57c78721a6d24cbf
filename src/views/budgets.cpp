#include "views/budgets.h"

#include <algorithm>
#include <map>

#include "accounting/budget_meter.h"
#include "model/job_spec.h"
#include "scheduling/quota/budgets.h"

namespace gpu_platform::views {

using accounting::BudgetMeter;
using accounting::ExactCost;

namespace {

constexpr std::int64_t kMillisecondsPerHour = 3'600'000;

accounting::BudgetMeters meters_as_of(const controller::Snapshot& snapshot) {
  accounting::BudgetMeters meters;
  for (const auto& [key, state] : *snapshot.budgets) {
    meters.emplace(
        key, BudgetMeter(model::millis_of(state.period_begin),
                         model::millis_of(model::end_of(state.budget.period, state.period_begin))));
  }
  const accounting::MeterTerms terms{snapshot.nodes, *snapshot.prices, *snapshot.policy};
  snapshot.jobs.for_each([&](std::uint64_t, const model::Job& job) {
    if (job.attempts.empty() || !model::holds_resources(job)) return;
    for (const model::BudgetState* state :
         scheduling::budgets_of(*snapshot.budgets, *snapshot.policy->organisation, *job.spec)) {
      BudgetMeter& meter = meters.at(state->budget.key);
      for (const model::Attempt& attempt : job.attempts) meter.add(terms, job, attempt);
    }
  });
  return meters;
}

BudgetFigures figures_of(const model::BudgetState& state, const BudgetMeter& meter,
                         const model::PriceBook& prices, base::Instant now) {
  const model::Millis at = model::millis_of(now);
  const ExactCost settled(state.settled);
  const ExactCost amount(state.budget.amount);
  BudgetFigures figures;
  figures.state = &state;
  figures.spent = settled + meter.cost(prices, at);
  figures.per_hour = ExactCost(meter.rate(prices, at).units() * kMillisecondsPerHour);
  if (figures.spent >= amount) return figures;
  const auto reached = meter.reaches(prices, amount - settled);
  if (reached) figures.spent_at = base::Instant(*reached * 1'000'000);
  return figures;
}

}  // namespace

std::vector<BudgetFigures> budget_figures(const controller::Snapshot& snapshot, base::Instant now) {
  std::vector<BudgetFigures> all;
  if (snapshot.budgets->empty()) return all;
  const accounting::BudgetMeters meters = meters_as_of(snapshot);
  for (const auto& [key, state] : *snapshot.budgets) {
    all.push_back(figures_of(state, meters.at(key), *snapshot.prices, now));
  }
  return all;
}

}  // namespace gpu_platform::views
