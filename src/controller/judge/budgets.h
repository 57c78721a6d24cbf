#pragma once

#include <cstddef>
#include <optional>

#include "base/result.h"
#include "controller/judge/events.h"
#include "controller/state.h"
#include "model/caller.h"
#include "model/command.h"
#include "model/event.h"

// Judges changes of budgets, and what follows when they are spent.

namespace gpu_platform::controller {

inline constexpr std::size_t kMaxBudgets = 10'000;
inline constexpr std::size_t kMaxOverrideReason = 1'024;  // bytes

// An administrator may set every budget. A coordinator of a team may give it one and may lower it:
// a smaller amount, or more that follows when it is spent.
base::Result<model::BudgetSet> judge_budget(const State& state, const model::Caller& caller,
                                            const model::SetBudget& command, base::Instant now);
// Overrides are for administrators, and for coordinators of a team above that of the budget. They
// last no longer than its present period.
base::Result<model::BudgetSet> judge_override(const State& state, const model::Caller& caller,
                                              const model::OverrideBudget& command,
                                              base::Instant now);
// Only administrators remove what was set at run time.
base::Result<model::BudgetRemoved> judge_removal(const State& state, const model::Caller& caller,
                                                 const model::RemoveBudget& command,
                                                 base::Instant now);

// Returns when some budget passes a level by what runs now, its period ends or its override does;
// nothing if none ever will.
std::optional<base::Instant> next_budget_count(const State& state);

// Returns the stops of attempts whose budgets are spent and stop what runs. Cost: the budgets, and
// the attempts that hold something while such a budget has some.
Events stops_by_budgets(const State& state, base::Instant now);

}  // namespace gpu_platform::controller
