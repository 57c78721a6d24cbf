#include "scheduling/quota/budgets.h"

#include <algorithm>
#include <string>

#include "model/job_spec.h"

namespace gpu_platform::scheduling {

using model::BudgetState;
using model::BudgetStates;
using model::QuotaHolder;

std::vector<const BudgetState*> budgets_of(const BudgetStates& budgets,
                                           const model::Organisation& organisation,
                                           const model::JobSpec& spec) {
  std::vector<const BudgetState*> found;
  if (budgets.empty()) return found;
  const auto add = [&](QuotaHolder holder, const std::string& name) {
    const auto budget = budgets.find({holder, name});
    if (budget != budgets.end()) found.push_back(&budget->second);
  };
  const model::Team* team = spec.team.empty() ? nullptr : model::find_team(organisation, spec.team);
  for (; team != nullptr; team = model::find_team(organisation, team->parent)) {
    add(QuotaHolder::kTeam, team->name);
    if (team->parent.empty()) break;
  }
  add(QuotaHolder::kUser, spec.user);
  if (!spec.project.empty()) add(QuotaHolder::kProject, spec.project);
  return found;
}

bool bars_starts(const BudgetStates& budgets, base::Instant at) {
  return std::ranges::any_of(
      budgets, [&](const auto& entry) { return model::bars_starts(entry.second, at); });
}

const BudgetState* budget_in_the_way(const BudgetStates& budgets,
                                     const model::Organisation& organisation,
                                     const model::JobSpec& spec, base::Instant at) {
  for (const BudgetState* state : budgets_of(budgets, organisation, spec)) {
    if (model::bars_starts(*state, at)) return state;
  }
  return nullptr;
}

model::QuotaExcess excess_of(const BudgetState& state, const model::Billing& billing) {
  model::QuotaExcess excess;
  excess.holder = state.budget.key.holder;
  excess.name = state.budget.key.name;
  excess.kind = model::QuotaKind::kBudget;
  excess.used = static_cast<std::uint64_t>(std::max(state.counted.value(), std::int64_t{0}));
  excess.limit = static_cast<std::uint64_t>(state.budget.amount.value());
  excess.period = to_string(state.budget.period);
  excess.renews_at = model::end_of(state.budget.period, state.period_begin);
  excess.currency = billing.currency;
  return excess;
}

std::optional<model::QuotaExcess> budget_excess(const BudgetStates& budgets,
                                                const model::Policy& policy,
                                                const model::JobSpec& spec, base::Instant at) {
  const BudgetState* state = budget_in_the_way(budgets, *policy.organisation, spec, at);
  if (state == nullptr) return std::nullopt;
  return excess_of(*state, *policy.billing);
}

}  // namespace gpu_platform::scheduling
