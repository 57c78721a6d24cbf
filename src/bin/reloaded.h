#pragma once

#include <memory>
#include <mutex>
#include <utility>

namespace gpu_platform::bin {

// A value that a reload changes while the API reads it: a reader keeps what it got. Any thread.
template <class Value>
class Reloaded {
 public:
  void set(Value value) {
    auto next = std::make_shared<const Value>(std::move(value));
    const std::lock_guard lock(mutex_);
    value_.swap(next);
  }
  // Null before the first set().
  std::shared_ptr<const Value> get() const {
    const std::lock_guard lock(mutex_);
    return value_;
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const Value> value_;
};

}  // namespace gpu_platform::bin
