#pragma once

#include <cstddef>
#include <span>

#include "base/check.h"
#include "base/units.h"

namespace gpu_platform::scheduling {

// The value that `percent` of 100 do not pass, by nearest rank: the ⌈percent · n / 100⌉-th of n,
// exact and always one of them. `ascending` is not empty; 1 <= percent <= 100.
inline base::Duration quantile(std::span<const base::Duration> ascending, std::size_t percent) {
  CHECK(!ascending.empty() && percent >= 1 && percent <= 100);
  const std::size_t rank = (percent * ascending.size() + 99) / 100;
  return ascending[rank - 1];
}

}  // namespace gpu_platform::scheduling
