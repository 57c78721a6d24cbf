#include "listener/census.h"

namespace gpu_platform::listener {

bool Census::enter(const Key& key) {
  const std::lock_guard lock(mutex_);
  if (connections_ >= limits_.connections) return false;
  Holding& holding = by_address_[key];
  if (holding.connections >= limits_.connections_per_address) return false;
  ++holding.connections;
  ++connections_;
  return true;
}

void Census::leave(const Key& key) {
  const std::lock_guard lock(mutex_);
  --connections_;
  const auto found = by_address_.find(key);
  if (--found->second.connections == 0) by_address_.erase(found);
}

bool Census::take_bytes(const Key& key, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  Holding& holding = by_address_[key];
  if (bytes_ + bytes > limits_.body_bytes) return false;
  if (holding.bytes + bytes > limits_.body_bytes / 4) return false;
  bytes_ += bytes;
  holding.bytes += bytes;
  return true;
}

void Census::give_bytes(const Key& key, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  bytes_ -= bytes;
  by_address_[key].bytes -= bytes;
}

std::uint64_t Census::connections() const {
  const std::lock_guard lock(mutex_);
  return connections_;
}

}  // namespace gpu_platform::listener
