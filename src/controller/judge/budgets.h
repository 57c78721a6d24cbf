#pragma once

#include <optional>

#include "base/result.h"
#include "controller/state.h"
#include "model/caller.h"
#include "model/command.h"
#include "model/event.h"

// Judges changes of budgets, and when what they have spent is counted.

namespace gpu_platform::controller {

base::Result<model::BudgetSet> judge_budget(const State& state, const model::Caller& caller,
                                            const model::SetBudget& command, base::Instant now);
base::Result<model::BudgetSet> judge_override(const State& state, const model::Caller& caller,
                                              const model::OverrideBudget& command,
                                              base::Instant now);
base::Result<model::BudgetRemoved> judge_removal(const State& state, const model::Caller& caller,
                                                 const model::RemoveBudget& command,
                                                 base::Instant now);

// Returns when some budget passes a level by what runs now, its period ends or its override does;
// nothing if none ever will.
std::optional<base::Instant> next_budget_count(const State& state);

}  // namespace gpu_platform::controller
