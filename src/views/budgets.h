#pragma once

#include <optional>
#include <vector>

#include "accounting/exact_cost.h"
#include "base/units.h"
#include "controller/snapshot.h"
#include "model/budget.h"

namespace gpu_platform::views {

// A budget with what it has spent up to a moment. It lives as long as the snapshot.
struct BudgetFigures {
  const model::BudgetState* state = nullptr;
  accounting::ExactCost spent;     // in the present period
  accounting::ExactCost per_hour;  // by what runs, at the prices of the moment
  // When it is spent if the same jobs run on; unset: not in this period, or it is.
  base::Instant spent_at;
};

// Returns all budgets by their keys. Cost: all jobs if there are budgets, else none.
std::vector<BudgetFigures> budget_figures(const controller::Snapshot& snapshot, base::Instant now);

}  // namespace gpu_platform::views
