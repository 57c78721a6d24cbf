#pragma once

#include <array>
#include <cstdint>

#include "base/histogram.h"
#include "base/units.h"
#include "model/preemption_hold.h"
#include "scheduling/plan_cycle.h"

// What the daemon counts of its own work since it began. It is no part of the state: it is not
// journalled, begins at zero with each start, and no decision depends on it.

namespace gpu_platform::controller {

// Seconds.
inline constexpr double kWorkTimes[] = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
                                        0.05,   0.1,     0.25,   0.5,   1,      2.5,   5,    10};
inline constexpr double kWaitTimes[] = {1,    5,    15,    60,    300,   900,    1800,
                                        3600, 7200, 14400, 43200, 86400, 259200, 604800};
inline constexpr double kNumbers[] = {1,   2,   5,    10,   20,   50,    100,
                                      200, 500, 1000, 2000, 5000, 10000, 50000};

struct Statistics {
  base::Instant since;

  // A step takes in what has come, decides, and commits that to the journal.
  base::Histogram inputs{kNumbers};  // of each step
  base::Histogram decide_seconds{kWorkTimes};
  base::Histogram commit_seconds{kWorkTimes};

  // A scheduling cycle that found nothing changed since the last one is not counted.
  base::Histogram cycle_seconds{kWorkTimes};
  base::Histogram considered{kNumbers};  // waiting jobs that a cycle looked at
  std::array<double, scheduling::kStages.size()> stage_seconds{};

  std::uint64_t jobs_submitted = 0;
  std::uint64_t jobs_completed = 0;
  std::uint64_t jobs_failed = 0;
  std::uint64_t jobs_cancelled = 0;
  std::uint64_t jobs_timed_out = 0;
  std::uint64_t jobs_requeued = 0;  // for any reason
  std::uint64_t attempts_started = 0;
  std::uint64_t backfilled = 0;                                      // of these
  std::array<std::uint64_t, model::kPreemptionRules> preemptions{};  // decided, by rule
  // From the time at which a job could be considered to the request to start it.
  base::Histogram wait_seconds{kWaitTimes};
};

}  // namespace gpu_platform::controller
