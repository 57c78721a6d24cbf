#pragma once

#include <memory>
#include <utility>

namespace gpu_platform::base {

// An immutable value that its copies share; two of the same value are equal. For values that are
// large, copied often and changed seldom. Never empty.
// Thread: any; copies may live in several.
template <class T>
class Shared {
 public:
  Shared() : value_(empty()) {}
  Shared(T value)  // NOLINT(google-explicit-constructor): it stands for the value
      : value_(std::make_shared<const T>(std::move(value))) {}

  const T& operator*() const { return *value_; }
  const T* operator->() const { return value_.get(); }

  // Cheap where both are copies of one.
  friend bool operator==(const Shared& a, const Shared& b) {
    return a.value_ == b.value_ || *a.value_ == *b.value_;
  }

 private:
  static const std::shared_ptr<const T>& empty() {
    static const std::shared_ptr<const T> value = std::make_shared<const T>();
    return value;
  }

  std::shared_ptr<const T> value_;
};

}  // namespace gpu_platform::base
