#include "controller/judge/prices.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/parse.h"
#include "base/utc.h"
#include "model/access.h"
#include "model/gpu_catalogue.h"

namespace gpu_platform::controller {

namespace {

using base::ErrorCode;
using model::Price;

constexpr std::size_t kMaxNameBytes = 255;
constexpr std::size_t kMaxReasonBytes = 1000;
// A thousand million of the currency.
constexpr base::MicroUsd kMaxCorrection{1'000'000'000'000'000};

base::Status check_may_touch_money(const model::Caller& caller, std::string_view what) {
  if (model::may_touch_site(caller)) return {};
  return base::fail(ErrorCode::kPermissionDenied,
                    fmt::format("user {} may not {}: only administrators may", caller.user, what));
}

// Returns the type as the book has it. A type that neither the catalogue nor the cluster has would
// be the price of nothing.
base::Result<std::string> priced_type(const State& state, const std::string& wanted) {
  if (auto known = model::canonical_gpu_type(wanted)) return *std::move(known);
  std::string found;
  state.nodes.for_each([&](std::uint64_t, const model::Node& node) {
    for (const model::Gpu& gpu : node.gpus) {
      if (found.empty() && model::gpu_type_matches(wanted, gpu.info.type)) found = gpu.info.type;
    }
  });
  if (!found.empty()) return found;
  return base::invalid("gpu_type", fmt::format("gpu_type: no GPU type '{}' is known to the "
                                               "catalogue or to the cluster",
                                               wanted));
}

base::Status check_price(const Price& price, base::Instant now) {
  if (price.gpu_type.empty() && price.node.empty()) {
    return base::invalid("gpu_type", "gpu_type: give a type, or a node, or both");
  }
  if (price.node.size() > kMaxNameBytes) {
    return base::invalid("node", fmt::format("node: at most {} bytes", kMaxNameBytes));
  }
  if (price.per_hour < base::MicroUsd() || price.per_hour > model::kMaxPricePerHour) {
    return base::invalid("per_gpu_hour", fmt::format("per_gpu_hour: 0 to {} is allowed",
                                                     base::written(model::kMaxPricePerHour)));
  }
  if (price.from.is_set() && price.from < now) {
    return base::invalid("from", fmt::format("from: {} is past, and a price begins in the past "
                                             "never: what was used is billed as it was",
                                             base::utc(price.from)));
  }
  if (price.until.is_set() && price.until <= std::max(price.from, now)) {
    return base::invalid("until", "until: must be later than its begin, and in the future");
  }
  return {};
}

}  // namespace

base::Result<model::PriceSet> judge_price(const State& state, const model::Caller& caller,
                                          const model::SetPrice& command, base::Instant now) {
  TRY(check_may_touch_money(caller, "set prices"));
  model::PriceSet event{command.price, caller.user};
  TRY(check_price(event.price, now));
  if (!event.price.gpu_type.empty()) {
    TRY_ASSIGN(event.price.gpu_type, priced_type(state, command.price.gpu_type));
  }
  if (state.prices->entries.size() >= model::kMaxPriceEntries) {
    return base::fail(ErrorCode::kResourceExhausted,
                      fmt::format("there are {} prices already, which is the limit at run time: "
                                  "change the list of the configuration instead",
                                  state.prices->entries.size()));
  }
  return event;
}

base::Result<model::PriceWithdrawn> judge_withdrawal(const State& state,
                                                     const model::Caller& caller,
                                                     const model::WithdrawPrice& command,
                                                     base::Instant now) {
  TRY(check_may_touch_money(caller, "withdraw prices"));
  const model::PriceEntry* const entry = state.prices->find(command.id);
  if (entry == nullptr) {
    return base::fail(ErrorCode::kNotFound, fmt::format("there is no price {}", command.id), "id");
  }
  if (has_ended(*entry, now)) {
    return base::fail(ErrorCode::kFailedPrecondition,
                      fmt::format("price {} has ended already", command.id), "id");
  }
  if (entry->derived_from != 0) {
    return base::fail(ErrorCode::kFailedPrecondition,
                      fmt::format("price {} follows from price {}: withdraw that, or set a price "
                                  "of spot capacity",
                                  command.id, entry->derived_from),
                      "id");
  }
  return model::PriceWithdrawn{command.id, caller.user};
}

base::Result<model::LedgerCorrected> judge_correction(const State&, const model::Caller& caller,
                                                      const model::CorrectLedger& command,
                                                      base::Instant) {
  TRY(check_may_touch_money(caller, "correct the ledger"));
  if (command.user.empty() && command.team.empty() && command.project.empty()) {
    return base::invalid("user", "user: give a user, a team or a project, or a job that has them");
  }
  const std::pair<std::string_view, const std::string*> names[] = {
      {"user", &command.user}, {"team", &command.team}, {"project", &command.project}};
  for (const auto& [field, name] : names) {
    if (name->size() <= kMaxNameBytes) continue;
    return base::invalid(std::string(field),
                         fmt::format("{}: at most {} bytes", field, kMaxNameBytes));
  }
  if (command.amount == base::MicroUsd() || command.amount > kMaxCorrection ||
      command.amount < kMaxCorrection * -1) {
    return base::invalid("amount",
                         fmt::format("amount: must not be 0, and lie within ±{}; what is taken "
                                     "back is negative",
                                     base::written(kMaxCorrection)));
  }
  if (command.text.empty() || command.text.size() > kMaxReasonBytes) {
    return base::invalid("text", fmt::format("text: say why, in 1 to {} bytes", kMaxReasonBytes));
  }
  return model::LedgerCorrected{command.user,   command.team, command.project, command.attempt,
                                command.amount, command.text, caller.user};
}

}  // namespace gpu_platform::controller
