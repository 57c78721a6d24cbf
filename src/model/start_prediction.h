#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "model/ids.h"

namespace gpu_platform::model {

// The data that a predicted start is based on.
enum class PredictionBasis : std::uint8_t {
  kHardLimits,    // every job takes all of its time limit
  kExpectedTime,  // jobs with an expected time take that time
  kHistory,       // jobs with a history take as long as similar runs did
};
inline constexpr std::size_t kPredictionBases = 3;
std::string_view to_string(PredictionBasis basis);  // "history"

// The predictions of a waiting job's start that were made when it first got a planned start, or
// before that, deep in the queue.
struct StartPrediction {
  base::Instant made_at;
  base::Instant by_limits;  // the promise
  // They follow from the predicted run times of other jobs: half of the jobs, and nine in ten,
  // start by then. Both are unset if there were no predictions. p50 is never after by_limits.
  base::Instant p50;
  base::Instant p90;
  PredictionBasis basis = PredictionBasis::kHardLimits;  // of p50 and p90
  std::vector<JobId> after;      // that held something of its place; at most kMaxNamedInPrediction
  std::uint64_t jobs_ahead = 0;  // that waited then
  // What p50 and p90 were before the errors of earlier predictions corrected them. Unset: there
  // were none, or an older version made the prediction.
  base::Instant simulated_p50;
  base::Instant simulated_p90;

  friend bool operator==(const StartPrediction&, const StartPrediction&) = default;
};
inline constexpr std::size_t kMaxNamedInPrediction = 5;

}  // namespace gpu_platform::model
