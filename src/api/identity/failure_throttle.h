#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "base/units.h"

namespace gpu_platform::api {

// Limits how often wrong credentials are tried. An address that has failed too often is not looked
// at until it has waited. When all addresses together fail too often, only those that showed a
// right credential lately are looked at: an attack from many places does not keep out the people
// who work here.
//
// Bounded: it remembers a number of addresses, and forgets first those that matter least. Safe from
// any thread. Time comes in, and may run backwards.
class FailureThrottle {
 public:
  struct Limits {
    std::uint32_t failures = 20;                       // of one address, at once
    base::Duration one_more_after = base::seconds(3);  // it may fail once more
    std::uint32_t failures_of_all = 500;
    base::Duration one_more_of_all_after = base::milliseconds(20);
    base::Duration known_for = base::hours(24);  // after a right credential
    std::size_t addresses = 4096;
  };

  FailureThrottle() = default;
  explicit FailureThrottle(Limits limits) : limits_(limits) {}

  bool may_try(std::string_view address, base::Instant now) const;
  void failed(std::string_view address, base::Instant now);
  void succeeded(std::string_view address, base::Instant now);

  std::size_t size() const;  // addresses that it remembers

 private:
  struct Entry {
    base::Instant paid_at;      // all of its failures are forgiven then
    base::Instant known_until;  // unset: no right credential came from there
  };
  Entry& entry_of(std::string_view address, base::Instant now);
  void forget_one(base::Instant now);

  const Limits limits_;
  mutable std::mutex mutex_;
  std::map<std::string, Entry, std::less<>> entries_;  // by address_group()
  base::Instant all_paid_at_;
};

// Returns what counts as one address: the address itself or, of IPv6, its network of 64 bits, which
// one host has for itself. "192.0.2.7", "2001:db8:1:2::/64"; "unknown" for what is no address.
std::string address_group(std::string_view address);

}  // namespace gpu_platform::api
