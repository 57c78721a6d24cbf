#pragma once

#include <compare>
#include <cstdint>

#include "base/units.h"
#include "model/ids.h"
#include "model/job.h"
#include "model/policy.h"

namespace gpu_platform::scheduling {

// A waiting job's place in the queue; the smaller goes first. It changes only with events (the
// policy, the job), never with time alone, so a long queue is never sorted again for a cycle.
// Points of the priority class, more first; then the number inside the class, time of submission,
// id.
struct Rank {
  std::int64_t points = 0;
  std::uint8_t number = 0;
  base::Instant submitted_at;
  model::JobId job;

  friend bool operator==(const Rank&, const Rank&) = default;
  friend std::strong_ordering operator<=>(const Rank& a, const Rank& b) {
    if (const auto by_points = b.points <=> a.points; by_points != 0) return by_points;
    if (const auto by_number = a.number <=> b.number; by_number != 0) return by_number;
    if (const auto by_time = a.submitted_at <=> b.submitted_at; by_time != 0) return by_time;
    return a.job <=> b.job;
  }
};

Rank rank_of(model::JobId job, const model::JobSpec& spec, base::Instant submitted_at,
             const model::Policy& policy);

}  // namespace gpu_platform::scheduling
