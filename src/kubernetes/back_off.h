#pragma once

#include <algorithm>
#include <cstdint>

#include "base/prng.h"
#include "base/units.h"

// Pauses between retries. Each is twice as long as the one before, up to a maximum, with jitter, so
// that clients that failed together do not retry together.

namespace gpu_platform::kubernetes {

class BackOff {
 public:
  BackOff(base::Duration first, base::Duration longest, std::uint64_t seed)
      : first_(first), longest_(longest), prng_(seed) {}

  // Between half and the whole of the present pause, which then doubles.
  base::Duration next() {
    const base::Duration pause = std::clamp(pause_, first_, longest_);
    pause_ = std::min(pause * 2, longest_);
    const std::int64_t half = pause.value() / 2;
    return base::Duration(half) + below(base::Duration(half));
  }
  void reset() { pause_ = base::Duration(); }

  // Anything from nothing to that long.
  base::Duration below(base::Duration most) {
    return base::Duration(static_cast<std::int64_t>(
        prng_.below(static_cast<std::uint64_t>(std::max<std::int64_t>(most.value(), 0)) + 1)));
  }

 private:
  base::Duration first_;
  base::Duration longest_;
  base::Duration pause_;
  base::Prng prng_;
};

}  // namespace gpu_platform::kubernetes
