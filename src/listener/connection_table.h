#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace gpu_platform::listener {

// What clients hold of the listener, in all and by their address: connections, and bytes of
// requests under way. Safe from any thread.
class ConnectionTable {
 public:
  struct Limits {
    std::uint64_t connections = 0;
    std::uint64_t connections_per_address = 0;
    std::uint64_t body_bytes = 0;  // one address may have a quarter of them
  };
  // An address that counts as one: all of IPv4's, the first half of IPv6's, which one host has
  // whole.
  using Key = std::string;

  explicit ConnectionTable(const Limits& limits) : limits_(limits) {}

  bool enter(const Key& key);
  void leave(const Key& key);
  bool take_bytes(const Key& key, std::uint64_t bytes);
  void give_bytes(const Key& key, std::uint64_t bytes);
  std::uint64_t connections() const;

 private:
  struct Holding {
    std::uint64_t connections = 0;
    std::uint64_t bytes = 0;
  };
  const Limits limits_;
  mutable std::mutex mutex_;
  std::map<Key, Holding> by_address_;
  std::uint64_t connections_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace gpu_platform::listener
