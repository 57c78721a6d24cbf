#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "telemetry/bit_stream.h"

// Rice codes: a number without its lowest `rice` bits in unary, then these bits. `rice` is at most
// 63.

namespace gpu_platform::telemetry {

// Numbers whose unary part would be this long have all their bits instead, so that one spike costs
// little.
inline constexpr int kRiceEscape = 24;

inline void put_rice(std::uint64_t v, int rice, BitWriter& out) {
  const std::uint64_t high = v >> rice;
  if (high >= kRiceEscape) {
    out.put(std::uint64_t{1} << kRiceEscape, kRiceEscape + 1);
    return out.put(v, 64);
  }
  const int unary = static_cast<int>(high) + 1;
  if (unary + rice <= 64) {
    return out.put(std::uint64_t{1} << high | low_bits(v, rice) << unary, unary + rice);
  }
  out.put(std::uint64_t{1} << high, unary);
  out.put(low_bits(v, rice), rice);
}

inline std::uint64_t take_rice(BitReader& in, int rice) {
  const std::uint64_t bits = in.peek();
  const int high = std::countr_zero(bits);
  if (high < kRiceEscape && rice <= 32) [[likely]] {
    in.skip(high + 1 + rice);
    return static_cast<std::uint64_t>(high) << rice | low_bits(bits >> (high + 1), rice);
  }
  in.skip(std::min(high, kRiceEscape) + 1);
  if (high > kRiceEscape) in.reject();
  if (high >= kRiceEscape) return in.take(64);
  return static_cast<std::uint64_t>(high) << rice | in.take(rice);
}

}  // namespace gpu_platform::telemetry
