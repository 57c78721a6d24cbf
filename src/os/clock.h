#pragma once

#include <time.h>

#include <cstdint>

#include "base/units.h"

// The host's clocks. They cannot fail.

namespace gpu_platform::os {

// Nanoseconds of CLOCK_REALTIME, CLOCK_BOOTTIME, …
inline std::int64_t clock_ns(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

// The time of day. It may be set, also backwards.
inline base::Instant wall_now() {
  return base::Instant(clock_ns(CLOCK_REALTIME));
}

// Since the host's start. It counts on while the host sleeps, so time limits mean real time.
inline std::int64_t boot_ns() {
  return clock_ns(CLOCK_BOOTTIME);
}
inline std::int64_t boot_ms() {
  return boot_ns() / 1'000'000;
}

// Since some moment; it stands still while the host sleeps. For measuring how long something took.
inline std::int64_t monotonic_ns() {
  return clock_ns(CLOCK_MONOTONIC);
}
inline std::int64_t monotonic_ms() {
  return monotonic_ns() / 1'000'000;
}

// Returns at a time of monotonic_ns(), or earlier where a signal comes.
inline void rest_until(std::int64_t monotonic_time_ns) {
  const timespec t{monotonic_time_ns / 1'000'000'000, monotonic_time_ns % 1'000'000'000};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr);
}

}  // namespace gpu_platform::os
