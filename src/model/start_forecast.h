#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "model/ids.h"

namespace gpu_platform::model {

// What an estimated start reckons with.
enum class ForecastBasis : std::uint8_t {
  kHardLimits,    // everybody takes all of its time limit
  kExpectedTime,  // those who said so take the time that they expect to
  kHistory,       // those with a history take as long as their like did
};
inline constexpr std::size_t kForecastBases = 3;
std::string_view to_string(ForecastBasis basis);  // "history"

// When a waiting job was to start, as foreseen when it first got a reservation.
struct StartForecast {
  base::Instant made_at;
  base::Instant by_limits;  // the promise
  // By what is expected of others: half of the jobs, and nine in ten, start by then. Both are unset
  // where nothing was expected of anybody, and never after by_limits.
  base::Instant p50;
  base::Instant p90;
  ForecastBasis basis = ForecastBasis::kHardLimits;  // of p50 and p90
  std::vector<JobId> after;  // that held something of its place; at most kMostNamedInForecast

  friend bool operator==(const StartForecast&, const StartForecast&) = default;
};
inline constexpr std::size_t kMostNamedInForecast = 5;

}  // namespace gpu_platform::model
