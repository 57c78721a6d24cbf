#include "scheduling/order/growth.h"

#include <array>
#include <cstddef>

#include "base/check.h"

namespace gpu_platform::scheduling {

namespace {

__extension__ using Wide = unsigned __int128;

constexpr int kBits = 62;  // roots and products are in parts of 2^-62, below 2

constexpr Wide root_of(Wide square) {
  Wide root = 0;
  for (Wide bit = Wide{1} << 63; bit != 0; bit >>= 1) {
    const Wide larger = root | bit;
    if (larger * larger <= square) root = larger;
  }
  return root;
}

// 2^(1/2), 2^(1/4), …, 2^(2^-32).
constexpr std::array<std::uint64_t, 32> roots_of_two() {
  std::array<std::uint64_t, 32> roots{};
  Wide former = Wide{2} << kBits;
  for (std::uint64_t& root : roots) {
    former = root_of(former << kBits);
    root = static_cast<std::uint64_t>(former);
  }
  return roots;
}
constexpr std::array<std::uint64_t, 32> kRoots = roots_of_two();

}  // namespace

// Each bit of the exponent names a root; the result is their product.
std::uint64_t power_of_two(std::uint64_t part, std::uint64_t whole) {
  CHECK(part < whole);
  const auto exponent = static_cast<std::uint64_t>((Wide{part} << 32) / whole);
  Wide power = Wide{1} << kBits;
  for (std::size_t i = 0; i < kRoots.size(); ++i) {
    const bool has_root = (exponent >> (kRoots.size() - 1 - i) & 1U) != 0;
    if (has_root) power = power * kRoots[i] >> kBits;
  }
  return static_cast<std::uint64_t>(power >> (kBits - 32));
}

}  // namespace gpu_platform::scheduling
