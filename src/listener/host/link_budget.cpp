#include "listener/host/link_budget.h"

#include <algorithm>

#include "base/hash.h"

namespace gpu_platform::listener {

namespace {

constexpr std::int64_t kMilli = 1'000;
// Between two looks for credentials that can be forgotten.
constexpr std::int64_t kForgetEveryMs = 1'000;

}  // namespace

std::int64_t RateMeter::used_at(const Rate& rate, std::int64_t now_ms) const {
  // Of one a second, a thousandth comes back in a millisecond.
  const std::int64_t passed_ms = std::clamp<std::int64_t>(now_ms - at_ms_, 0, 3'600'000);
  return std::max<std::int64_t>(used_milli_ - passed_ms * rate.per_second, 0);
}

bool RateMeter::take(const Rate& rate, std::int64_t now_ms) {
  used_milli_ = used_at(rate, now_ms);
  at_ms_ = now_ms;
  if (used_milli_ + kMilli > rate.at_once * kMilli) return false;
  used_milli_ += kMilli;
  return true;
}

bool RateMeter::is_rested(const Rate& rate, std::int64_t now_ms) const {
  return used_at(rate, now_ms) == 0;
}

RateMeter& LinkBudget::meter_of(const Credential& credential, std::int64_t now_ms) {
  const std::uint64_t key =
      base::hash64(credential.secret, static_cast<std::uint64_t>(credential.kind));
  if (const auto found = by_credential_.find(key); found != by_credential_.end()) {
    return found->second;
  }
  const bool is_full = by_credential_.size() >= limits_.credentials;
  if (is_full && now_ms - forgotten_at_ms_ >= kForgetEveryMs) {
    forgotten_at_ms_ = now_ms;
    std::erase_if(by_credential_, [&](const auto& entry) {
      return entry.second.is_rested(limits_.links_of_credential, now_ms);
    });
  }
  if (by_credential_.size() >= limits_.credentials) return of_others_;
  return by_credential_[key];
}

bool LinkBudget::take_link(const Credential& credential, std::int64_t now_ms) {
  // Its own budget first: a credential that has used it up takes nothing of the others'.
  return meter_of(credential, now_ms).take(limits_.links_of_credential, now_ms) &&
         links_.take(limits_.links, now_ms);
}

}  // namespace gpu_platform::listener
