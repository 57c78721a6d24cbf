#include "api/identity/token_uses.h"

#include <algorithm>

namespace gpu_platform::api {

bool TokenUses::note(const model::Token& token, base::Instant now) {
  constexpr std::int64_t kMinute = 60'000'000'000;
  const base::Instant minute(now.unix_ns() / kMinute * kMinute);
  const std::lock_guard lock(mutex_);
  const auto [entry, is_new] = uses_.try_emplace(token.id, Use{minute, token.used_at});
  Use& use = entry->second;
  use.last = std::max(use.last, minute);
  const bool is_news = !use.told.is_set() || minute >= use.told + model::kTokenUseInterval;
  if (is_news) use.told = minute;
  // More than there can be: the first ones are gone.
  if (is_new && uses_.size() > model::kMaxTokens) uses_.erase(uses_.begin());
  return is_news;
}

base::Instant TokenUses::last_of(const model::Token& token) const {
  const std::lock_guard lock(mutex_);
  const auto found = uses_.find(token.id);
  return found == uses_.end() ? token.used_at : std::max(token.used_at, found->second.last);
}

}  // namespace gpu_platform::api
