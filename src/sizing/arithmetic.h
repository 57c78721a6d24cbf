#pragma once

#include <cstdint>
#include <initializer_list>

#include "base/units.h"

// Arithmetic on figures that people type: instead of overflowing, a result is kMaxResult.

namespace gpu_platform::sizing {

// Far below the largest signed number, so that results may be added.
inline constexpr std::uint64_t kMaxResult = 9'000'000'000'000'000;

inline std::uint64_t product(std::initializer_list<std::uint64_t> factors) {
  std::uint64_t result = 1;
  for (const std::uint64_t factor : factors) {
    if (factor != 0 && result > kMaxResult / factor) return kMaxResult;
    result *= factor;
  }
  return result;
}

inline base::Bytes in_bytes(std::uint64_t bytes) {
  return base::Bytes(static_cast<std::int64_t>(bytes));
}

inline std::uint64_t bytes_in(base::Bytes bytes) {
  return static_cast<std::uint64_t>(bytes.value());
}

constexpr std::uint64_t rounded_up(std::uint64_t a, std::uint64_t b) {
  return (a + b - 1) / b;
}

}  // namespace gpu_platform::sizing
