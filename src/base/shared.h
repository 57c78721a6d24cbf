#pragma once

#include <memory>
#include <utility>

namespace gpu_platform::base {

// An immutable value that its copies share; two of the same value are equal. For values that are
// large, copied often and changed seldom. Without a value it stands for T(). T may be declared
// alone where no value is made or looked at. Thread: any; copies may live in several.
template <class T>
class Shared {
 public:
  Shared() = default;
  Shared(T value)  // NOLINT(google-explicit-constructor): it stands for the value
      : value_(std::make_shared<const T>(std::move(value))) {}

  const T& operator*() const { return value_ == nullptr ? empty() : *value_; }
  const T* operator->() const { return &**this; }

  // Cheap where both are copies of one.
  friend bool operator==(const Shared& a, const Shared& b) {
    return a.value_ == b.value_ || *a == *b;
  }

 private:
  static const T& empty() {
    static const T value{};
    return value;
  }

  std::shared_ptr<const T> value_;  // null: a T() that all of them share
};

}  // namespace gpu_platform::base
