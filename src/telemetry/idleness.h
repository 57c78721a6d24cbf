#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>

#include "base/units.h"

namespace gpu_platform::telemetry {

// When an attempt counts as idle on its GPUs.
struct IdleRule {
  std::uint32_t below_percent = 5;
  base::Duration after = base::minutes(30);
  // After its first use it is not idle for so long.
  base::Duration grace = base::minutes(30);
  // A job that has not used its GPUs yet loads its data: until then it is not idle.
  base::Duration loading = base::hours(2);

  friend bool operator==(const IdleRule&, const IdleRule&) = default;
};

// Whether one attempt is idle: the mean utilization of all its GPUs over the last `after` of known
// time is below the limit. Readings count for the time to the next one. What is not known is never
// idle: its time does not count, and after a long gap the window begins anew. Bursts count by their
// share of the window: an attempt that worked and then stops is idle once the window is past it.
//
// Times are on the steady clock, and only grow.
class Idleness {
 public:
  static constexpr base::Duration kMaxGap = base::minutes(5);
  static constexpr base::Duration kStep = base::minutes(1);  // of the window

  // One reading of all GPUs of the attempt, which has run for `age` (since its start, by the wall
  // clock). An absent one makes the reading unknown.
  void take(base::Instant at, base::Duration age,
            std::span<const std::optional<std::uint32_t>> percent, const IdleRule& rule);

  bool is_idle() const { return is_idle_; }
  // Whether the last reading was complete.
  bool is_known() const { return is_known_; }
  // Whether it used its GPUs in the last reading.
  bool uses_now(const IdleRule& rule) const {
    return is_known_ && last_percent_ >= rule.below_percent;
  }
  // How long it has been idle, short gaps in what is known included; 0 if it is not.
  base::Duration idle_for(base::Instant now) const;
  // The mean of the window; none: too little is known.
  std::optional<std::uint32_t> mean_percent(const IdleRule& rule) const;

 private:
  struct Step {
    base::Duration known;
    std::int64_t percent_ns = 0;  // percent × known time
  };
  void count(base::Duration passed, std::uint32_t percent, const IdleRule& rule);
  void begin_anew();

  std::deque<Step> steps_;  // the oldest first
  base::Duration known_;    // of all of them
  std::int64_t percent_ns_ = 0;
  std::optional<base::Instant> last_at_;  // of the last known reading
  std::uint32_t last_percent_ = 0;
  std::optional<base::Instant> first_use_;
  bool is_known_ = false;
  bool is_idle_ = false;
  std::optional<base::Instant> idle_since_;  // stays over a short gap
};

}  // namespace gpu_platform::telemetry
