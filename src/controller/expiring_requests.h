#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/units.h"

namespace gpu_platform::controller {

// The request ids of jobs that have ended, by when they are forgotten.
// Ownership: values. Thread: one owner. Cost: O(log users + log ids of the user).
class ExpiringRequests {
 public:
  using Key = std::pair<std::string, std::string>;  // user, request id

  void put(base::Instant expires, const Key& key);
  void erase(base::Instant expires, const Key& key);

  bool empty() const { return firsts_.empty(); }
  // The next to be forgotten; not of an empty one.
  std::pair<base::Instant, Key> first() const;
  std::size_t count_of(const std::string& user) const;
  // That user's next; not where it has none.
  std::pair<base::Instant, Key> first_of(const std::string& user) const;

  friend bool operator==(const ExpiringRequests&, const ExpiringRequests&) = default;

 private:
  using OfUser = std::set<std::pair<base::Instant, std::string>>;

  std::map<std::string, OfUser> users_;                     // none empty
  std::set<std::pair<base::Instant, std::string>> firsts_;  // the first of each user
};

}  // namespace gpu_platform::controller
