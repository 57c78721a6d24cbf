#include "scheduling/order/fair_share_use.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "model/job_spec.h"
#include "scheduling/order/growth.h"
#include "scheduling/quota/subjects.h"

namespace gpu_platform::scheduling {

namespace {

__extension__ using Wide = unsigned __int128;

constexpr Wide kNanosecondsPerUnit = Wide{1'000'000} << 10;  // of a part of 2^-32
constexpr std::uint64_t kMaxUse = std::numeric_limits<std::uint64_t>::max() >> 1;

// A value that would need longer than the platform can run becomes the maximum.
void add_to(std::uint64_t& sum, Wide more) {
  sum = static_cast<std::uint64_t>(std::min<Wide>(sum + more, kMaxUse));
}

template <class Change>
void for_each_amount(FairShareUse::Amounts& amounts, const Change& change) {
  for (std::uint64_t* amount : {&amounts.counted, &amounts.uncounted, &amounts.counted_gpu_time,
                                &amounts.uncounted_gpu_time}) {
    change(*amount);
  }
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
      has_uncounted_(std::ranges::any_of(accounts,
                                         [](const auto& account) {
                                           return account.second.uncounted > 0 ||
                                                  account.second.uncounted_gpu_time > 0;
                                         })),
      accounts_(std::move(accounts)) {}

void FairShareUse::move_epoch(base::Instant at, base::Duration half_life) {
  if (!epoch_.is_set()) epoch_ = at;
  if (!is_past(at, half_life)) return;
  const std::int64_t halvings = (at - epoch_).value() / half_life.value();
  epoch_ = epoch_ + half_life * halvings;
  const std::int64_t shift = std::min<std::int64_t>(halvings, 63);
  for (auto& [account, amounts] : accounts_) {
    for_each_amount(amounts, [&](std::uint64_t& amount) { amount >>= shift; });
  }
}

void FairShareUse::charge(const Account& account, std::uint64_t part, base::GpuShare gpus,
                          base::Instant from, base::Instant to, base::Duration half_life) {
  if (to <= from) return;
  CHECK(to >= epoch_ && !is_past(to, half_life));
  const Wide use = Wide{part} * static_cast<std::uint64_t>((to - from).value());
  const std::uint64_t growth = power_of_two(static_cast<std::uint64_t>((to - epoch_).value()),
                                            static_cast<std::uint64_t>(half_life.value()));
  const Wide grown = (use / kNanosecondsPerUnit) * growth >> 32;
  const Wide grown_gpu_time = Wide{gpu_time(gpus, to - from)} * growth >> 32;
  if (grown == 0 && grown_gpu_time == 0) return;
  Amounts& amounts = accounts_[account];
  add_to(amounts.uncounted, grown);
  add_to(amounts.uncounted_gpu_time, grown_gpu_time);
  has_uncounted_ = true;
}

void FairShareUse::count(base::Instant at, base::Duration half_life) {
  move_epoch(at, half_life);
  counted_to_ = at;
  if (!std::exchange(has_uncounted_, false)) return;
  for (auto& [account, amounts] : accounts_) {
    add_to(amounts.counted, std::exchange(amounts.uncounted, 0));
    add_to(amounts.counted_gpu_time, std::exchange(amounts.uncounted_gpu_time, 0));
  }
}

void FairShareUse::change_half_life(base::Instant at, base::Duration from, base::Duration to) {
  if (from == to || !epoch_.is_set()) return;
  move_epoch(at, from);
  const std::uint64_t growth = power_of_two(static_cast<std::uint64_t>((at - epoch_).value()),
                                            static_cast<std::uint64_t>(from.value()));
  for (auto& [account, amounts] : accounts_) {
    for_each_amount(amounts, [&](std::uint64_t& amount) {
      amount = static_cast<std::uint64_t>((Wide{amount} << 32) / growth);
    });
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
    add_to(alone.counted_gpu_time, account->second.counted_gpu_time);
    add_to(alone.uncounted_gpu_time, account->second.uncounted_gpu_time);
    account = accounts_.erase(account);
  }
}

}  // namespace gpu_platform::scheduling
