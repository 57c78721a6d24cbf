#pragma once

#include <algorithm>
#include <cstdint>

#include "node/time_limit.h"

namespace gpu_platform::node {

// Decides when an idle interactive job is ended, and when that is announced: a minute before, or
// half of the time if that is less. Nanoseconds on the boot clock; 0: never. Pure: the clock is an
// argument.
class IdleLimit {
 public:
  explicit IdleLimit(std::uint64_t limit_ms) : limit_(in_ns(limit_ms)) {}

  // There was input or output; the first call says that the job has begun.
  void touch(std::int64_t now) {
    if (limit_ == 0) return;
    deadline_ = std::max<std::int64_t>(now + limit_, 1);
    if (left_ != 0) left_ = limit_;
    is_announced_ = false;
  }
  // The job is being ended, or has ended: there is nothing more to watch.
  void drop() { deadline_ = left_ = 0; }
  // The job stands still and can do nothing, which does not count; go_on() ends that. Both may be
  // repeated.
  void pause(std::int64_t now) {
    if (deadline_ != 0 && left_ == 0) left_ = std::max<std::int64_t>(deadline_ - now, 1);
  }
  void go_on(std::int64_t now) {
    if (left_ != 0) deadline_ = std::max<std::int64_t>(now + left_, 1);
    left_ = 0;
  }

  std::int64_t deadline() const { return left_ != 0 ? 0 : deadline_; }
  std::int64_t announcement() const {
    return deadline() == 0 || is_announced_ ? 0 : std::max<std::int64_t>(deadline_ - notice(), 1);
  }
  void announced() { is_announced_ = true; }
  // The time between the notice and the end.
  std::int64_t notice() const { return std::min(limit_ / 2, kLongestNotice); }

 private:
  static constexpr std::int64_t kLongestNotice = 60'000'000'000;

  std::int64_t limit_;
  std::int64_t deadline_ = 0;
  std::int64_t left_ = 0;  // while it is paused; 0: it is not
  bool is_announced_ = false;
};

}  // namespace gpu_platform::node
