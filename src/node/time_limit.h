#pragma once

#include <algorithm>
#include <cstdint>

namespace gpu_platform::node {

// Any time of the protocol as nanoseconds, cut to what fits.
constexpr std::int64_t in_ns(std::uint64_t ms) {
  constexpr std::uint64_t kLongestMs = std::uint64_t{1} << 43;
  return static_cast<std::int64_t>(std::min(ms, kLongestMs)) * 1'000'000;
}

// When a job's time is up and when it is warned of it, in nanoseconds on the boot clock; 0: never.
// Pure: the clock is an argument.
class TimeLimit {
 public:
  TimeLimit(std::uint64_t limit_ms, std::uint64_t warn_before_ms)
      : limit_(in_ns(limit_ms)), warn_before_(in_ns(warn_before_ms)) {}

  void begin(std::int64_t now) { began_ = now; }

  // A job that got more time is warned once more.
  void change(std::uint64_t limit_ms) {
    if (limit_ms == 0) return;
    if (in_ns(limit_ms) > limit_) is_warned_ = false;
    limit_ = in_ns(limit_ms);
  }

  std::int64_t limit() const { return limit_; }
  std::int64_t deadline() const {
    return limit_ == 0 ? 0 : std::max<std::int64_t>(began_ + limit_, 1);
  }

  // Returns the time of the warning: at once if the limit is shorter than that. 0: none is due.
  std::int64_t warning() const {
    if (limit_ == 0 || is_warned_) return 0;
    return std::max<std::int64_t>(deadline() - warn_before_, std::max<std::int64_t>(began_, 1));
  }
  void warned() { is_warned_ = true; }

 private:
  std::int64_t limit_;
  std::int64_t warn_before_;
  std::int64_t began_ = 0;
  bool is_warned_ = false;
};

}  // namespace gpu_platform::node
