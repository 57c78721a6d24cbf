#include "api/rest/budget.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"

namespace gpu_platform::api {

namespace {

std::uint64_t kept_of(const Budget::Limits& limits) {
  const std::uint64_t percent = std::min<std::uint64_t>(limits.percent_kept, 100);
  return limits.in_all - limits.in_all / 100 * (100 - percent) -
         limits.in_all % 100 * (100 - percent) / 100;
}

std::uint64_t count(base::Bytes bytes) {
  return static_cast<std::uint64_t>(bytes.value());
}

// An eighth of the connections is for callers on this machine.
std::uint64_t of_links(std::uint64_t connections) {
  return connections - connections / 8;
}

}  // namespace

Budget::Budget(const Limits& limits)
    : limits_(limits), for_users_(limits.in_all - kept_of(limits)) {}

bool Budget::is_own_limit_reached(const Holder& holder, std::uint64_t amount) const {
  if (holder.is_privileged) return false;
  const auto found = by_account_.find(holder.account);
  return (found == by_account_.end() ? 0 : found->second) + amount > limits_.per_user;
}

base::Status Budget::judge(const Holder& holder, std::uint64_t amount) const {
  if (is_own_limit_reached(holder, amount)) {
    const auto found = by_account_.find(holder.account);
    return base::fail(
        base::ErrorCode::kResourceExhausted,
        fmt::format("{} has {} {}; the limit for one user is {} ({}): {}", holder.name,
                    found == by_account_.end() ? 0 : found->second, limits_.has, limits_.per_user,
                    limits_.key_per_user, limits_.advice));
  }
  if (!holder.is_privileged && of_users_ + amount > for_users_) {
    return base::fail(
        base::ErrorCode::kUnavailable,
        fmt::format("all users together have {} {}; the limit is {} ({}: {}, of which {} are kept "
                    "for root by api.percent_for_root): try again in a moment",
                    of_users_, limits_.has, for_users_, limits_.key_in_all, limits_.in_all,
                    limits_.in_all - for_users_));
  }
  const std::uint64_t all = of_users_ + of_privileged_;
  if (all + amount <= limits_.in_all) return {};
  return base::fail(base::ErrorCode::kUnavailable,
                    fmt::format("all users together have {} {}; the limit is {} ({}): try again in "
                                "a moment",
                                all, limits_.has, limits_.in_all, limits_.key_in_all));
}

void Budget::add(const Holder& holder, std::uint64_t amount) {
  if (holder.is_privileged) {
    of_privileged_ += amount;
  } else {
    by_account_[holder.account] += amount;
    of_users_ += amount;
  }
}

base::Status Budget::try_take(const Holder& holder, std::uint64_t amount) {
  const std::lock_guard lock(mutex_);
  TRY(judge(holder, amount));
  add(holder, amount);
  return {};
}

void Budget::take(const Holder& holder, std::uint64_t amount) {
  const std::lock_guard lock(mutex_);
  add(holder, amount);
}

// Wakes more than one, because some of them may have gone.
void Budget::take_some(Wakers& from, std::vector<std::function<void()>>& into) {
  constexpr std::size_t kAtOnce = 8;
  for (std::size_t i = 0; i < kAtOnce && !from.empty(); ++i) {
    into.push_back(std::move(from.front()));
    from.pop_front();
  }
}

void Budget::give_back(const Holder& holder, std::uint64_t amount) {
  std::vector<std::function<void()>> woken;
  {
    const std::lock_guard lock(mutex_);
    if (holder.is_privileged) {
      CHECK(of_privileged_ >= amount);
      of_privileged_ -= amount;
    } else {
      const auto found = by_account_.find(holder.account);
      CHECK(found != by_account_.end() && found->second >= amount && of_users_ >= amount);
      of_users_ -= amount;
      found->second -= amount;
      if (found->second == 0) by_account_.erase(found);
    }
    const auto own = waiting_.find(holder.account);
    if (own != waiting_.end() && !is_own_limit_reached(holder, 1)) {
      take_some(own->second, woken);
      if (own->second.empty()) waiting_.erase(own);
    }
    if (of_users_ < for_users_) take_some(waiting_for_all_, woken);
  }
  for (const auto& wake : woken) wake();
}

base::Status Budget::check_capacity(const Holder& holder) const {
  const std::lock_guard lock(mutex_);
  return judge(holder, 1);
}

void Budget::call_when_less(const Holder& holder, std::function<void()> wake) {
  {
    const std::lock_guard lock(mutex_);
    if (is_own_limit_reached(holder, 1)) {
      waiting_[holder.account].push_back(std::move(wake));
      return;
    }
    if (!judge(holder, 1)) {
      waiting_for_all_.push_back(std::move(wake));
      return;
    }
  }
  wake();
}

std::uint64_t Budget::taken() const {
  const std::lock_guard lock(mutex_);
  return of_users_ + of_privileged_;
}

std::uint64_t Budget::taken_by_users() const {
  const std::lock_guard lock(mutex_);
  return of_users_;
}

base::Status Lease::try_become(std::uint64_t amount) {
  if (budget_ != nullptr && amount > amount_) {
    TRY(budget_->try_take(holder_, amount - amount_));
    amount_ = amount;
  } else {
    become(amount);
  }
  return {};
}

void Lease::become(std::uint64_t amount) {
  if (budget_ == nullptr || amount == amount_) return;
  const std::uint64_t before = std::exchange(amount_, amount);
  if (amount > before) {
    budget_->take(holder_, amount - before);
  } else {
    budget_->give_back(holder_, before - amount);
  }
}

Budgets::Budgets(const BudgetLimits& limits)
    : connections({"connections open", "close some, or wait until they end", "api.max_connections",
                   "api.max_connections_per_user", limits.connections, limits.connections_per_user,
                   limits.percent_for_root}),
      links({"connections from other machines open",
             "close some, or wait until they end (an eighth of all is kept for this machine)",
             "api.max_connections", "api.max_connections_per_user", of_links(limits.connections),
             of_links(limits.connections_per_user)}),
      channels({"channels into jobs open (exec, attach, forwarded ports)", "leave some",
                "api.max_channels", "api.max_channels_per_user", limits.channels,
                limits.channels_per_user, limits.percent_for_root}),
      streams({"long answers (waits, followed output, event streams)", "end some",
               "api.max_connections", "api.max_streams_per_user", limits.connections,
               limits.streams_per_user, limits.percent_for_root}),
      bodies({"bytes of unanswered requests", "send them one after the other", "api.max_body_bytes",
              "api.max_body_bytes_per_user", count(limits.body_bytes),
              count(limits.body_bytes_per_user), limits.percent_for_root}),
      answers({"bytes of unread answers", "read them, or close those connections",
               "api.max_answer_bytes", "api.max_answer_bytes_per_user", count(limits.answer_bytes),
               count(limits.answer_bytes_per_user), limits.percent_for_root}) {}

}  // namespace gpu_platform::api
