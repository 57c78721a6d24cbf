#pragma once

#include <sys/timerfd.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

namespace gpu_platform::node {

// A timer on the boot clock, so that time limits count on while the host sleeps.
class BootTimer {
 public:
  bool open() {
    handle_ = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    return handle_ >= 0;
  }
  int handle() const { return handle_; }

  // Makes the handle readable at `at_ns` of os::boot_ns(); 0: never.
  void set(std::int64_t at_ns) {
    constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;
    if (std::exchange(at_ns_, at_ns) == at_ns) return;
    itimerspec when{};
    when.it_value.tv_sec = at_ns / kNanosecondsPerSecond;
    when.it_value.tv_nsec = at_ns % kNanosecondsPerSecond;
    timerfd_settime(handle_, TFD_TIMER_ABSTIME, &when, nullptr);
  }
  // Makes the handle quiet until the next time that is set.
  void quiet() const {
    std::uint64_t expirations = 0;
    [[maybe_unused]] const ssize_t got = read(handle_, &expirations, sizeof expirations);
  }

 private:
  int handle_ = -1;
  std::int64_t at_ns_ = 0;
};

}  // namespace gpu_platform::node
