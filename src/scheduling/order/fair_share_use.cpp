#include "scheduling/order/fair_share_use.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "scheduling/order/growth.h"

namespace gpu_platform::scheduling {

namespace {

__extension__ using Wide = unsigned __int128;

constexpr Wide kNanosecondsPerUnit = Wide{1'000'000} << 10;  // of a part of 2^-32
constexpr std::uint64_t kMaxUse = std::numeric_limits<std::uint64_t>::max() >> 1;

// What would need longer than the platform can run is as much as there can be.
void add_to(std::uint64_t& sum, Wide more) {
  sum = static_cast<std::uint64_t>(std::min<Wide>(sum + more, kMaxUse));
}

}  // namespace

Account account_of(const model::Organisation& organisation, const model::JobSpec& spec) {
  const bool is_known = !spec.team.empty() && model::find_team(organisation, spec.team) != nullptr;
  return {is_known ? spec.team : std::string(), spec.user};
}

bool needs_use(const model::Policy& policy) {
  if (policy.order == model::QueueOrder::kFairShare) return true;
  return policy.order == model::QueueOrder::kWeighted && policy.weights.fair_share > 0;
}

FairShareUse::FairShareUse(base::Instant epoch, base::Instant counted_to, Accounts accounts)
    : epoch_(epoch),
      counted_to_(counted_to),
      has_uncounted_(std::ranges::any_of(
          accounts, [](const auto& account) { return account.second.uncounted > 0; })),
      accounts_(std::move(accounts)) {}

void FairShareUse::move_epoch(base::Instant at, base::Duration half_life) {
  if (!epoch_.is_set()) epoch_ = at;
  if (!is_past(at, half_life)) return;
  const std::int64_t halvings = (at - epoch_).value() / half_life.value();
  epoch_ = epoch_ + half_life * halvings;
  const std::int64_t shift = std::min<std::int64_t>(halvings, 63);
  for (auto& [account, amounts] : accounts_) {
    amounts.counted >>= shift;
    amounts.uncounted >>= shift;
  }
}

void FairShareUse::charge(const Account& account, std::uint64_t part, base::Instant from,
                          base::Instant to, base::Duration half_life) {
  if (to <= from) return;
  CHECK(to >= epoch_ && !is_past(to, half_life));
  const Wide use = Wide{part} * static_cast<std::uint64_t>((to - from).value());
  const std::uint64_t growth = power_of_two(static_cast<std::uint64_t>((to - epoch_).value()),
                                            static_cast<std::uint64_t>(half_life.value()));
  const Wide grown = (use / kNanosecondsPerUnit) * growth >> 32;
  if (grown == 0) return;
  add_to(accounts_[account].uncounted, grown);
  has_uncounted_ = true;
}

void FairShareUse::count(base::Instant at, base::Duration half_life) {
  move_epoch(at, half_life);
  counted_to_ = at;
  if (!std::exchange(has_uncounted_, false)) return;
  for (auto& [account, amounts] : accounts_) {
    add_to(amounts.counted, std::exchange(amounts.uncounted, 0));
  }
}

void FairShareUse::change_half_life(base::Instant at, base::Duration from, base::Duration to) {
  if (from == to || !epoch_.is_set()) return;
  move_epoch(at, from);
  const std::uint64_t growth = power_of_two(static_cast<std::uint64_t>((at - epoch_).value()),
                                            static_cast<std::uint64_t>(from.value()));
  for (auto& [account, amounts] : accounts_) {
    amounts.counted = static_cast<std::uint64_t>((Wide{amounts.counted} << 32) / growth);
    amounts.uncounted = static_cast<std::uint64_t>((Wide{amounts.uncounted} << 32) / growth);
  }
  epoch_ = at;
}

void FairShareUse::follow(const model::Organisation& organisation) {
  for (auto account = accounts_.begin(); account != accounts_.end();) {
    const auto& [team, user] = account->first;
    if (team.empty() || model::find_team(organisation, team) != nullptr) {
      ++account;
      continue;
    }
    Amounts& alone = accounts_[{{}, user}];
    add_to(alone.counted, account->second.counted);
    add_to(alone.uncounted, account->second.uncounted);
    account = accounts_.erase(account);
  }
}

}  // namespace gpu_platform::scheduling
