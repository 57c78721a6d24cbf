#include "api/convert/budget.h"

#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/convert/job.h"
#include "base/parse.h"
#include "base/suggest.h"

namespace gpu_platform::api {

namespace {

constexpr std::array<std::string_view, model::kQuotaHolders> kHolders = {"team", "user", "project"};

// The messages' values are one higher: their zero is what was not given.
template <class Value, class Named>
std::optional<Value> value_of(Named named) {
  const int number = static_cast<int>(named);
  return number == 0 ? std::nullopt : std::optional(static_cast<Value>(number - 1));
}
template <class Named, class Value>
Named named(Value value) {
  return static_cast<Named>(static_cast<int>(value) + 1);
}
static_assert(v1::BudgetPeriod_MAX == model::kBudgetPeriods &&
              v1::BudgetAct_MAX == model::kBudgetActs &&
              v1::BudgetLevel_MAX == model::kBudgetLevels);

base::Result<model::BudgetKey> key_of(const std::string& holder, const std::string& name) {
  TRY_ASSIGN(const model::QuotaHolder kind, parse_holder(holder));
  return model::BudgetKey{kind, name};
}

}  // namespace

base::Result<model::QuotaHolder> parse_holder(std::string_view text) {
  for (std::size_t i = 0; i < kHolders.size(); ++i) {
    if (kHolders.at(i) == text) return static_cast<model::QuotaHolder>(i);
  }
  return base::invalid("holder",
                       fmt::format("holder: '{}' is not one of {}{}", text.substr(0, 64),
                                   fmt::join(kHolders, ", "), base::did_you_mean(text, kHolders)));
}

base::Result<model::SetBudget> to_model(const v1::SetBudgetRequest& request) {
  model::SetBudget command;
  TRY_ASSIGN(command.key, key_of(request.holder(), request.name()));
  if (request.has_amount()) {
    const auto amount = base::parse_money(request.amount());
    if (!amount) return base::invalid("amount", "amount: " + amount.error().message);
    command.amount = *amount;
  }
  command.period = value_of<model::BudgetPeriod>(request.period());
  command.act = value_of<model::BudgetAct>(request.at_limit());
  return command;
}

base::Result<model::OverrideBudget> to_model(const v1::OverrideBudgetRequest& request) {
  model::OverrideBudget command;
  TRY_ASSIGN(command.key, key_of(request.holder(), request.name()));
  if (request.has_until()) command.until = to_model(request.until());
  command.why = request.why();
  return command;
}

void to_proto(const model::BudgetState& state, const std::string& currency, base::Instant now,
              v1::Budget& out) {
  const model::Budget& budget = state.budget;
  out.set_holder(std::string(to_string(budget.key.holder)));
  out.set_name(budget.key.name);
  out.set_period(named<v1::BudgetPeriod>(budget.period));
  out.set_amount(base::written(budget.amount));
  out.set_currency(currency);
  out.set_at_limit(named<v1::BudgetAct>(budget.act));
  out.set_level(named<v1::BudgetLevel>(state.level));
  to_proto(state.level_since, *out.mutable_level_since());
  to_proto(state.period_begin, *out.mutable_period_begin());
  to_proto(model::end_of(budget.period, state.period_begin), *out.mutable_renews_at());
  out.set_bars_starts(model::bars_starts(state, now));
  if (!budget.set_by.empty()) out.set_set_by(budget.set_by);
  if (!model::is_overridden(state, now)) return;
  v1::BudgetOverride& over = *out.mutable_override();
  to_proto(budget.over.until, *over.mutable_until());
  over.set_by(budget.over.by);
  over.set_why(budget.over.why);
}

}  // namespace gpu_platform::api
