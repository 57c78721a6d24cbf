#include "api/identity/failure_throttle.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace gpu_platform::api {

namespace {

// The moments of leaky buckets: each failure puts the moment off at which all are forgiven.
struct Bucket {
  std::uint32_t failures;
  base::Duration each;

  base::Duration size() const { return each * static_cast<std::int64_t>(failures); }
  // One more still fits. A moment further away than the bucket's size is of a clock that was set
  // back.
  bool has_room(base::Instant paid_at, base::Instant now) const {
    return std::min(paid_at, now + size()) + each <= now + size();
  }
  base::Instant with_one_more(base::Instant paid_at, base::Instant now) const {
    return std::min(std::max(paid_at, now) + each, now + size());
  }
};

}  // namespace

std::string address_group(std::string_view address) {
  const std::string text(address.substr(0, address.find('%')));  // without the zone
  std::array<char, INET6_ADDRSTRLEN> out{};
  in_addr v4{};
  if (inet_pton(AF_INET, text.c_str(), &v4) == 1) {
    return inet_ntop(AF_INET, &v4, out.data(), out.size());
  }
  in6_addr v6{};
  if (inet_pton(AF_INET6, text.c_str(), &v6) != 1) return "unknown";
  if (IN6_IS_ADDR_V4MAPPED(&v6)) {
    return inet_ntop(AF_INET, &v6.s6_addr[12], out.data(), out.size());
  }
  std::memset(&v6.s6_addr[8], 0, 8);
  return std::string(inet_ntop(AF_INET6, &v6, out.data(), out.size())) + "/64";
}

bool FailureThrottle::may_try(std::string_view address, base::Instant now) const {
  const std::string group = address_group(address);
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(group);
  const Bucket own{limits_.failures, limits_.one_more_after};
  if (found != entries_.end() && !own.has_room(found->second.paid_at, now)) return false;
  if (found != entries_.end() && found->second.known_until > now) return true;
  return Bucket{limits_.failures_of_all, limits_.one_more_of_all_after}.has_room(all_paid_at_, now);
}

void FailureThrottle::failed(std::string_view address, base::Instant now) {
  const std::string group = address_group(address);
  const std::lock_guard lock(mutex_);
  Entry& entry = entry_of(group, now);
  entry.paid_at =
      Bucket{limits_.failures, limits_.one_more_after}.with_one_more(entry.paid_at, now);
  all_paid_at_ = Bucket{limits_.failures_of_all, limits_.one_more_of_all_after}.with_one_more(
      all_paid_at_, now);
}

void FailureThrottle::succeeded(std::string_view address, base::Instant now) {
  const std::string group = address_group(address);
  const std::lock_guard lock(mutex_);
  entry_of(group, now).known_until = now + limits_.known_for;
}

std::size_t FailureThrottle::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

FailureThrottle::Entry& FailureThrottle::entry_of(std::string_view group, base::Instant now) {
  const auto found = entries_.find(group);
  if (found != entries_.end()) return found->second;
  if (entries_.size() >= limits_.addresses) forget_one(now);
  return entries_[std::string(group)];
}

// What is over says nothing any more; then go addresses that showed no right credential, the ones
// that failed least first; then the one that showed a right one longest ago.
void FailureThrottle::forget_one(base::Instant now) {
  const auto weight = [now](const auto& entry) {
    const bool is_known = entry.second.known_until > now;
    return std::pair{is_known, is_known ? entry.second.known_until : entry.second.paid_at};
  };
  entries_.erase(std::ranges::min_element(entries_, {}, weight));
}

}  // namespace gpu_platform::api
