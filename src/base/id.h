#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace gpu_platform::base {

// A number that identifies one kind of thing. Ids of different kinds do not compare or convert.
// Zero is "none" and never a valid id.
template <class Tag>
struct Id {
  std::uint64_t value = 0;

  constexpr Id() = default;
  constexpr explicit Id(std::uint64_t v) : value(v) {}

  constexpr bool valid() const { return value != 0; }
  friend constexpr auto operator<=>(Id, Id) = default;
};

}  // namespace gpu_platform::base

template <class Tag>
struct std::hash<gpu_platform::base::Id<Tag>> {
  std::size_t operator()(gpu_platform::base::Id<Tag> id) const noexcept {
    return std::hash<std::uint64_t>{}(id.value);
  }
};
