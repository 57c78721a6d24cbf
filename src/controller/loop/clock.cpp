#include "controller/loop/clock.h"

#include <ctime>

namespace gpu_platform::controller {

namespace {

std::int64_t read_ns(clockid_t id) {
  timespec t{};
  clock_gettime(id, &t);
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

}  // namespace

base::Instant Clock::wall() const {
  return base::Instant(read_ns(CLOCK_REALTIME));
}
base::Duration Clock::since_boot() const {
  return base::Duration(read_ns(CLOCK_BOOTTIME));
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
