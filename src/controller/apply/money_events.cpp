#include <utility>

#include "base/check.h"
#include "controller/apply/attempt_limits.h"
#include "controller/apply/events.h"
#include "controller/budget_use.h"

// Prices, budgets and corrections.

namespace gpu_platform::controller {

void apply(Application& a, const model::PriceSet& event) {
  model::PriceBook prices = *a.state.prices;
  prices.set(event.price, event.by, a.at);
  a.state.prices = std::move(prices);
  meter_anew(a.state, a.at);
  shorten_limits(a);
}

void apply(Application& a, const model::PriceWithdrawn& event) {
  model::PriceBook prices = *a.state.prices;
  CHECK(prices.withdraw(event.id, a.at));
  a.state.prices = std::move(prices);
  meter_anew(a.state, a.at);
  shorten_limits(a);
}

void apply(Application& a, const model::BudgetSet& event) {
  put_budget(a.state, event.budget, a.at);
}

void apply(Application& a, const model::BudgetRemoved& event) {
  remove_budget(a.state, event.key, a.at);
}

void apply(Application& a, const model::BudgetsCounted&) {
  count_budgets(a.state, a.at);
}

void apply(Application& a, const model::LedgerCorrected& event) {
  model::LedgerLine& line = a.out.ledger.emplace_back();
  line.kind = model::LedgerKind::kCorrection;
  line.from = line.started = line.ended = line.to = model::millis_of(a.at);
  line.attempt = event.attempt;
  line.user = event.user;
  line.team = event.team;
  line.project = event.project;
  line.amount = event.amount;
  line.text = event.text;
  line.by = event.by;
  correct_budgets(a.state, event, a.at);
}

}  // namespace gpu_platform::controller
