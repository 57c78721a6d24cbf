#include "controller/judge/budgets.h"

namespace gpu_platform::controller {

namespace {

std::unexpected<base::Error> no_budgets_yet() {
  return base::fail(base::ErrorCode::kUnimplemented, "not built yet");
}

}  // namespace

base::Result<model::BudgetSet> judge_budget(const State&, const model::Caller&,
                                            const model::SetBudget&, base::Instant) {
  return no_budgets_yet();
}

base::Result<model::BudgetSet> judge_override(const State&, const model::Caller&,
                                              const model::OverrideBudget&, base::Instant) {
  return no_budgets_yet();
}

base::Result<model::BudgetRemoved> judge_removal(const State&, const model::Caller&,
                                                 const model::RemoveBudget&, base::Instant) {
  return no_budgets_yet();
}

std::optional<base::Instant> next_budget_count(const State&) {
  return std::nullopt;
}

}  // namespace gpu_platform::controller
