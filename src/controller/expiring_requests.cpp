#include "controller/expiring_requests.h"

#include "base/check.h"

namespace gpu_platform::controller {

void ExpiringRequests::put(base::Instant expires, const Key& key) {
  const auto& [user, id] = key;
  OfUser& of_user = users_[user];
  if (!of_user.empty()) firsts_.erase({of_user.begin()->first, user});
  of_user.emplace(expires, id);
  firsts_.emplace(of_user.begin()->first, user);
}

void ExpiringRequests::erase(base::Instant expires, const Key& key) {
  const auto& [user, id] = key;
  const auto found = users_.find(user);
  if (found == users_.end()) return;
  OfUser& of_user = found->second;
  firsts_.erase({of_user.begin()->first, user});
  of_user.erase({expires, id});
  if (of_user.empty()) {
    users_.erase(found);
  } else {
    firsts_.emplace(of_user.begin()->first, user);
  }
}

std::pair<base::Instant, ExpiringRequests::Key> ExpiringRequests::first() const {
  CHECK(!firsts_.empty());
  return first_of(firsts_.begin()->second);
}

std::size_t ExpiringRequests::count_of(const std::string& user) const {
  const auto found = users_.find(user);
  return found == users_.end() ? 0 : found->second.size();
}

std::pair<base::Instant, ExpiringRequests::Key> ExpiringRequests::first_of(
    const std::string& user) const {
  const auto found = users_.find(user);
  CHECK(found != users_.end());
  const auto& [expires, id] = *found->second.begin();
  return {expires, {user, id}};
}

}  // namespace gpu_platform::controller
