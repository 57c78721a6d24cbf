// A time of day that stands still: all that asks the C library for it, this program's standard
// library too, gets the one given. Linked into the test, where freeze_time() sets it, and preloaded
// into the programs that the test runs, where the variable GP_FROZEN_TIME_NS does. Other clocks go
// on.

#include "frozen_clock.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

namespace gpu_platform::corpus {

namespace {

constexpr std::int64_t kNotFrozen = 0;

std::int64_t time_of_environment() {
  const char* const text = std::getenv("GP_FROZEN_TIME_NS");
  return text != nullptr ? std::strtoll(text, nullptr, 10) : kNotFrozen;
}

std::atomic<std::int64_t>& frozen() {
  static std::atomic<std::int64_t> time = time_of_environment();
  return time;
}

}  // namespace

void freeze_time(std::int64_t unix_ns) {
  frozen() = unix_ns;
}

}  // namespace gpu_platform::corpus

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const std::int64_t ns = gpu_platform::corpus::frozen();
  if (clock != CLOCK_REALTIME || ns == gpu_platform::corpus::kNotFrozen) {
    return static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  }
  *time = {ns / 1'000'000'000, ns % 1'000'000'000};
  return 0;
}
