#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpu_platform::sizing {

// The storage of a weight or a cached value.
struct Precision {
  std::uint32_t centibits = 1600;  // hundredths of a bit, with its share of the scales
  bool is_method = false;  // "gptq": its usual number of bits, which a name may state better

  friend bool operator==(const Precision&, const Precision&) = default;
};

inline constexpr Precision k16Bits{1600, false};

// Reads "bf16", "int4", "awq"; '_' for '-' and case do not matter. Returns nothing for a name that
// leaves it open ("auto") or is not known.
std::optional<Precision> precision_of(std::string_view name);

// The names that precision_of() knows: "float32, fp32, …".
std::string precision_names();

// Returns the bytes of `count` values, rounded up and limited as in arithmetic.h.
std::uint64_t bytes_of(std::uint64_t count, Precision precision);

}  // namespace gpu_platform::sizing
