#pragma once

#include <algorithm>

#include "base/units.h"

namespace gpu_platform::simulation {

// Virtual time: `boot()` runs evenly, the wall clock may be set, and `told()` is what the core is
// told, by the rule of controller/loop/clock.h: never backwards, and where the wall clock has been
// set back it goes on at the pace of the boot clock.
class VirtualClock {
 public:
  explicit VirtualClock(base::Instant start) : boot_(start), told_(start), boot_at_told_(start) {}

  base::Instant boot() const { return boot_; }
  base::Instant wall() const { return boot_ + offset_; }

  void advance_to(base::Instant boot) { boot_ = std::max(boot_, boot); }
  void set_wall_by(base::Duration jump) { offset_ += jump; }
  base::Duration offset() const { return offset_; }

  base::Instant told() {
    told_ = wall() < told_ ? told_ + (boot_ - boot_at_told_) : wall();
    boot_at_told_ = boot_;
    return told_;
  }
  // The boot time at which told() will reach `instant` if the clock is not set.
  base::Instant boot_when(base::Instant instant) {
    const base::Duration left = instant - told();
    return left > base::Duration() ? boot_ + left : boot_;
  }
  // Sets the clock after a restart of the daemon, never earlier than what the journal knows.
  void restart_after(base::Instant not_before) {
    told_ = not_before;
    boot_at_told_ = boot_;
  }

 private:
  base::Instant boot_;
  base::Duration offset_;
  base::Instant told_;
  base::Instant boot_at_told_;
};

}  // namespace gpu_platform::simulation
