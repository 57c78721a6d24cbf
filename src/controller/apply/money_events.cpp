#include <utility>

#include "base/check.h"
#include "controller/apply/events.h"

// Prices, budgets and corrections.

namespace gpu_platform::controller {

void apply(Application& a, const model::PriceSet& event) {
  model::PriceBook prices = *a.state.prices;
  prices.set(event.price, event.by, a.at);
  a.state.prices = std::move(prices);
}

void apply(Application& a, const model::PriceWithdrawn& event) {
  model::PriceBook prices = *a.state.prices;
  CHECK(prices.withdraw(event.id, a.at));
  a.state.prices = std::move(prices);
}

void apply(Application&, const model::BudgetSet&) {}

void apply(Application&, const model::BudgetRemoved&) {}

void apply(Application&, const model::BudgetsCounted&) {}

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
}

}  // namespace gpu_platform::controller
