#pragma once

#include <time.h>

#include <cstdint>

#include "base/units.h"

// The supervisor's clocks.

namespace gpu_platform::node {

inline constexpr std::int64_t kSecond = 1'000'000'000;

inline std::int64_t clock_ns(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return t.tv_sec * kSecond + t.tv_nsec;
}
inline base::Instant wall_now() {
  return base::Instant(clock_ns(CLOCK_REALTIME));
}
// Counts on while the machine sleeps: time limits mean real time.
inline std::int64_t boot_now() {
  return clock_ns(CLOCK_BOOTTIME);
}

}  // namespace gpu_platform::node
