#include "listener/connection_table.h"

namespace gpu_platform::listener {

bool ConnectionTable::enter(const Key& key) {
  const std::lock_guard lock(mutex_);
  if (connections_ >= limits_.connections) return false;
  Holding& holding = by_address_[key];
  if (holding.connections >= limits_.connections_per_address) return false;
  ++holding.connections;
  ++connections_;
  return true;
}

void ConnectionTable::leave(const Key& key) {
  const std::lock_guard lock(mutex_);
  --connections_;
  const auto found = by_address_.find(key);
  if (--found->second.connections == 0) by_address_.erase(found);
}

bool ConnectionTable::take_bytes(const Key& key, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  Holding& holding = by_address_[key];
  if (bytes_ + bytes > limits_.body_bytes) return false;
  if (holding.bytes + bytes > limits_.body_bytes / 4) return false;
  bytes_ += bytes;
  holding.bytes += bytes;
  return true;
}

void ConnectionTable::give_bytes(const Key& key, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  bytes_ -= bytes;
  by_address_[key].bytes -= bytes;
}

std::uint64_t ConnectionTable::connections() const {
  const std::lock_guard lock(mutex_);
  return connections_;
}

}  // namespace gpu_platform::listener
