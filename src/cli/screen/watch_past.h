#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "base/units.h"
#include "cli/text/graph.h"
#include "gpu_platform/v1/telemetry.pb.h"

namespace gpu_platform::cli {

// The utilization of GPUs in the last minutes, by their places ("dgx-1:3"). Pure. Times are those
// of the daemon.
class WatchPast {
 public:
  static constexpr base::Duration kSpan = base::minutes(10);
  // Values that follow each other more closely become one.
  static constexpr base::Duration kFinest = base::seconds(5);
  // A value stands for the time since the one before, and for no more than this.
  static constexpr base::Duration kMaxGap = base::minutes(1);

  // Takes the series of utilization_percent. What is known from then on is kept.
  void take(const v1::History& history);
  // Takes a value that is newer than all before. After a clock that was set back by more than a
  // minute, the GPU begins anew.
  void add(const std::string& place, base::Instant at, double percent);

  // A line of bars up to now; empty: nothing is known of the GPU.
  std::string line(const std::string& place, base::Instant now, std::size_t columns,
                   bool is_ascii) const;
  // The values of all of these GPUs.
  std::vector<GraphPoint> points_of(const std::vector<std::string>& places) const;

 private:
  std::map<std::string, std::deque<GraphPoint>> points_;  // the oldest first
};

// The bounds of a graph that ends now.
GraphScale scale_of_past(base::Instant now);

}  // namespace gpu_platform::cli
