#pragma once

#include <optional>
#include <vector>

#include "base/units.h"
#include "model/budget.h"
#include "model/job.h"
#include "model/policy.h"
#include "model/quota_excess.h"
#include "model/team.h"

// Budgets as limits of starts. What was spent is counted elsewhere (controller/budget_use.h).

namespace gpu_platform::scheduling {

// Returns the budgets that a job counts against: those of its team and of the teams above it, of
// its user and of its project. They live as long as `budgets`. Without budgets it costs nothing.
std::vector<const model::BudgetState*> budgets_of(const model::BudgetStates& budgets,
                                                  const model::Organisation& organisation,
                                                  const model::JobSpec& spec);

// Returns whether some budget bars starts at that time.
bool bars_starts(const model::BudgetStates& budgets, base::Instant at);

// Returns the first budget that bars a start of the job at that time; null if none does.
const model::BudgetState* budget_in_the_way(const model::BudgetStates& budgets,
                                            const model::Organisation& organisation,
                                            const model::JobSpec& spec, base::Instant at);

// Says what is in the way.
model::QuotaExcess excess_of(const model::BudgetState& state, const model::Billing& billing);

// Says what bars a start of the job at that time; nothing if no budget does.
std::optional<model::QuotaExcess> budget_excess(const model::BudgetStates& budgets,
                                                const model::Policy& policy,
                                                const model::JobSpec& spec, base::Instant at);

}  // namespace gpu_platform::scheduling
