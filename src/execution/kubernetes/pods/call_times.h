#pragma once

#include <algorithm>
#include <cstdint>

#include "base/units.h"

// How long calls to the cluster wait, and what they ask for in whole seconds.

namespace gpu_platform::execution {

// A claim that was deleted and is still there is asked for again after this time.
inline constexpr base::Duration kClaimRepeat = base::seconds(5);

// A call of a daemon that has ended may still be carried out for so long: it may be on its way to
// an API server, or wait in one, which gives requests up after a minute unless it is told
// otherwise.
inline constexpr base::Duration kLatestArrival = base::minutes(1);

// The pause after so many tries of a call, 1 or more: from 0.2 seconds, doubled, to 30 seconds.
inline base::Duration pause_after(int tries) {
  constexpr base::Duration kLongest = base::seconds(30);
  base::Duration pause = base::milliseconds(200);
  for (int i = 1; i < tries && pause < kLongest; ++i) pause = pause * 2;
  return std::min(pause, kLongest);
}

// Kubernetes takes whole seconds: rounded up, at least 1, because 0 would remove a pod without
// waiting for its processes, and at most a day.
inline std::uint32_t grace_in_seconds(base::Duration grace) {
  constexpr std::int64_t kSecond = base::seconds(1).value();
  return static_cast<std::uint32_t>(
      std::clamp<std::int64_t>((grace.value() + kSecond - 1) / kSecond, 1, 86'400));
}

}  // namespace gpu_platform::execution
