#include "controller/loop/clock.h"

#include "os/clock.h"

namespace gpu_platform::controller {

base::Instant Clock::wall() const {
  return os::wall_now();
}
base::Duration Clock::since_boot() const {
  return base::Duration(os::boot_ns());
}

base::Instant Clock::now() {
  const base::Duration boot = since_boot();
  base::Instant now = wall();
  if (now < last_) {
    now = boot_at_last_ && boot > *boot_at_last_ ? last_ + (boot - *boot_at_last_) : last_;
  }
  last_ = now;
  boot_at_last_ = boot;
  return now;
}

}  // namespace gpu_platform::controller
