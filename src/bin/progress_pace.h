#pragma once

#include "base/units.h"

namespace gpu_platform::bin {

// When a person is told how far long work is: not before it has taken a while, and then now and
// again. Time is given by the caller.
class ProgressPace {
 public:
  ProgressPace(base::Instant began, base::Duration first, base::Duration between)
      : next_(began + first), between_(between) {}

  // Whether it is time to tell; the next time is counted from this call on.
  bool is_due(base::Instant now) {
    if (now < next_) return false;
    next_ = now + between_;
    return true;
  }

 private:
  base::Instant next_;
  base::Duration between_;
};

}  // namespace gpu_platform::bin
