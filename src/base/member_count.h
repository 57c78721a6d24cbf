#pragma once

#include <cstddef>
#include <utility>

namespace gpu_platform::base {

namespace internal {

struct AnyValue {
  template <class T>
  operator T() const;  // NOLINT(google-explicit-constructor): it stands for any member's value
};

}  // namespace internal

// The number of values that the aggregate T can be initialised with: its members, and each element
// of an array. The compiler works it out, so that no member can be forgotten.
template <class T, class... Values>
consteval std::size_t member_count() {
  if constexpr (requires { T{std::declval<Values>()..., internal::AnyValue()}; }) {
    return member_count<T, Values..., internal::AnyValue>();
  } else {
    return sizeof...(Values);
  }
}

}  // namespace gpu_platform::base
