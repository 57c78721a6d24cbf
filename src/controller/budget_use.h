#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "accounting/exact_cost.h"
#include "base/units.h"
#include "controller/state.h"
#include "model/budget.h"
#include "model/event.h"
#include "model/job.h"
#include "model/ledger.h"

// What budgets have spent; apply() reports the changes as they happen. Without budgets all of it
// costs nothing.

namespace gpu_platform::controller {

// Computes all meters afresh. Cost: the attempts that hold something.
BudgetMeters meters_of(const State& state);

// The attempt is about to change, or its job's owner is, and has changed. Cost: the budgets that
// the job counts against, times the cells of their meters.
void stop_metering(State& state, const model::Job& job, const model::Attempt& attempt);
void meter(State& state, const model::Job& job, const model::Attempt& attempt);

// The attempt, which is not metered any more, was released with these lines: what is billed of them
// in the present periods is spent for good.
void settle_budgets(State& state, const model::JobSpec& spec,
                    std::span<const model::LedgerLine> lines, base::Instant at);
// The ledger was corrected.
void correct_budgets(State& state, const model::LedgerCorrected& correction, base::Instant at);

// Periods that are over give way to new ones, overrides that are over end, and levels follow what
// was spent up to now.
void count_budgets(State& state, base::Instant at);
// The policy was applied: budgets follow its list, but for those that were set at run time. What
// was spent, and the override of a budget that it still has, stay.
void follow_budgets(State& state, base::Instant at);
// Prices, teams or the classes of nodes have changed, so that what runs costs something else.
void meter_anew(State& state, base::Instant at);
// A person set a budget, or removed what was set.
void put_budget(State& state, const model::Budget& budget, base::Instant at);
void remove_budget(State& state, const model::BudgetKey& key, base::Instant at);

// Returns what was spent of the budget in its present period up to that time.
accounting::ExactCost spent_of(const State& state, const model::BudgetState& budget,
                               base::Instant at);

// Finds budgets whose level is not what was spent up to the last event: there should be none.
std::vector<std::string> wrong_budgets(const State& state);

}  // namespace gpu_platform::controller
