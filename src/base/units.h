#pragma once

#include <compare>
#include <cstdint>

#include "base/check.h"

// Integers with units. Each unit has only the operations that make sense for it; overflow is a bug
// and stops the program. There is no conversion from floating point.

namespace gpu_platform::base {

namespace internal {

inline std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  CHECK(!__builtin_add_overflow(a, b, &sum));
  return sum;
}

inline std::int64_t checked_sub(std::int64_t a, std::int64_t b) {
  std::int64_t difference = 0;
  CHECK(!__builtin_sub_overflow(a, b, &difference));
  return difference;
}

inline std::int64_t checked_mul(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  CHECK(!__builtin_mul_overflow(a, b, &product));
  return product;
}

}  // namespace internal

// An amount of something that can be added, subtracted, compared and scaled by a count.
template <class Tag>
class Amount {
 public:
  constexpr Amount() = default;
  constexpr explicit Amount(std::int64_t value) : value_(value) {}

  constexpr std::int64_t value() const { return value_; }

  friend Amount operator+(Amount a, Amount b) {
    return Amount(internal::checked_add(a.value_, b.value_));
  }
  friend Amount operator-(Amount a, Amount b) {
    return Amount(internal::checked_sub(a.value_, b.value_));
  }
  friend Amount operator*(Amount a, std::int64_t count) {
    return Amount(internal::checked_mul(a.value_, count));
  }
  Amount& operator+=(Amount other) { return *this = *this + other; }
  Amount& operator-=(Amount other) { return *this = *this - other; }
  friend constexpr auto operator<=>(Amount, Amount) = default;

 private:
  std::int64_t value_ = 0;
};

// Part of one GPU in 1/7000, so that halves, thousandths and MIG's sevenths are exact.
using GpuShare = Amount<struct GpuShareTag>;
inline constexpr GpuShare kWholeGpu{7000};

using Bytes = Amount<struct BytesTag>;
inline constexpr Bytes kMiB{std::int64_t{1} << 20};
inline constexpr Bytes kGiB{std::int64_t{1} << 30};

using Milliwatts = Amount<struct MilliwattsTag>;

// Money in millionths of a US dollar.
using MicroUsd = Amount<struct MicroUsdTag>;

// A span of time in nanoseconds; may be negative.
using Duration = Amount<struct DurationTag>;

constexpr Duration nanoseconds(std::int64_t n) {
  return Duration(n);
}
constexpr Duration microseconds(std::int64_t n) {
  return Duration(n * 1'000);
}
constexpr Duration milliseconds(std::int64_t n) {
  return Duration(n * 1'000'000);
}
constexpr Duration seconds(std::int64_t n) {
  return Duration(n * 1'000'000'000);
}
constexpr Duration minutes(std::int64_t n) {
  return seconds(n * 60);
}
constexpr Duration hours(std::int64_t n) {
  return seconds(n * 3600);
}

constexpr std::int64_t whole_milliseconds(Duration d) {
  return d.value() / 1'000'000;
}

// A point in time: nanoseconds since 1970-01-01T00:00:00Z. Zero means "not set"; the loop hands the
// core instants that never run backwards.
class Instant {
 public:
  constexpr Instant() = default;
  constexpr explicit Instant(std::int64_t unix_ns) : unix_ns_(unix_ns) {}

  constexpr std::int64_t unix_ns() const { return unix_ns_; }
  constexpr bool is_set() const { return unix_ns_ != 0; }

  friend Instant operator+(Instant t, Duration d) {
    return Instant(internal::checked_add(t.unix_ns_, d.value()));
  }
  friend Duration operator-(Instant a, Instant b) {
    return Duration(internal::checked_sub(a.unix_ns_, b.unix_ns_));
  }
  friend constexpr auto operator<=>(Instant, Instant) = default;

 private:
  std::int64_t unix_ns_ = 0;
};

}  // namespace gpu_platform::base
