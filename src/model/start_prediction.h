#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "model/ids.h"

namespace gpu_platform::model {

// What an estimated start reckons with.
enum class PredictionBasis : std::uint8_t {
  kHardLimits,    // everybody takes all of its time limit
  kExpectedTime,  // those who said so take the time that they expect to
  kHistory,       // those with a history take as long as their like did
};
inline constexpr std::size_t kPredictionBases = 3;
std::string_view to_string(PredictionBasis basis);  // "history"

// When a waiting job was to start, as predicted when it first got a planned start.
struct StartPrediction {
  base::Instant made_at;
  base::Instant by_limits;  // the promise
  // By what is expected of others: half of the jobs, and nine in ten, start by then. Both are unset
  // where nothing was expected of anybody, and never after by_limits.
  base::Instant p50;
  base::Instant p90;
  PredictionBasis basis = PredictionBasis::kHardLimits;  // of p50 and p90
  std::vector<JobId> after;  // that held something of its place; at most kMaxNamedInPrediction

  friend bool operator==(const StartPrediction&, const StartPrediction&) = default;
};
inline constexpr std::size_t kMaxNamedInPrediction = 5;

}  // namespace gpu_platform::model
