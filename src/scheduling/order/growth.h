#pragma once

#include <cstdint>

namespace gpu_platform::scheduling {

inline constexpr std::uint64_t kOne32 = std::uint64_t{1} << 32;  // 1 in parts of 2^-32

// Returns 2^(part / whole) in parts of 2^-32, for 0 <= part < whole: 2^32 to 2^33 - 1. It uses
// integers alone, so that every machine gets the same result; the error is below 2^-31 of it,
// downwards.
std::uint64_t power_of_two(std::uint64_t part, std::uint64_t whole);

}  // namespace gpu_platform::scheduling
