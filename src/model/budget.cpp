#include "model/budget.h"

#include <iterator>

#include "base/month.h"

namespace gpu_platform::model {

namespace {

base::Month first_month(BudgetPeriod period, base::Instant at) {
  base::Month first = base::month_of(at);
  if (period == BudgetPeriod::kQuarter) first.month -= (first.month - 1) % 3;
  if (period == BudgetPeriod::kYear) first.month = 1;
  return first;
}

}  // namespace

std::string_view to_string(BudgetPeriod period) {
  constexpr std::string_view kNames[] = {"month", "quarter", "year"};
  static_assert(std::size(kNames) == kBudgetPeriods);
  return kNames[static_cast<std::size_t>(period)];
}

std::string_view to_string(BudgetAct act) {
  constexpr std::string_view kNames[] = {"alert", "refuse", "stop"};
  static_assert(std::size(kNames) == kBudgetActs);
  return kNames[static_cast<std::size_t>(act)];
}

std::string_view to_string(BudgetLevel level) {
  constexpr std::string_view kNames[] = {"within", "nearly", "spent"};
  static_assert(std::size(kNames) == kBudgetLevels);
  return kNames[static_cast<std::size_t>(level)];
}

base::Instant begin_of(BudgetPeriod period, base::Instant at) {
  return base::begin_of(first_month(period, at));
}

base::Instant end_of(BudgetPeriod period, base::Instant at) {
  constexpr int kMonths[] = {1, 3, 12};
  static_assert(std::size(kMonths) == kBudgetPeriods);
  return base::begin_of(
      base::plus_months(first_month(period, at), kMonths[static_cast<std::size_t>(period)]));
}

bool is_overridden(const BudgetState& state, base::Instant at) {
  return at < state.budget.over.until;
}

bool bars_starts(const BudgetState& state, base::Instant at) {
  return state.budget.act != BudgetAct::kAlert && state.level == BudgetLevel::kSpent &&
         !is_overridden(state, at);
}

}  // namespace gpu_platform::model
