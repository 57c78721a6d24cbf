#pragma once

#include <cstdint>

#include "base/units.h"
#include "telemetry/points.h"

// What one metric did over a time, however long. All sums are exact, so the parts of a time add up
// to the whole in any order.

namespace gpu_platform::telemetry {

// Of a level. Without values all of it is 0, and says nothing.
struct LevelUse {
  using Sum = __int128;
  using Squares = unsigned __int128;

  std::uint64_t count = 0;
  std::int64_t min = 0;
  std::int64_t max = 0;
  Sum sum = 0;
  Squares squares = 0;  // the sum of the values' squares
  Distribution spread;

  void add(std::int64_t value);
  void add(const LevelUse& other);
  double mean() const;
  // The standard deviation; 0 with fewer than two values.
  double deviation() const;
  // How far the mean may be off: the standard error, if the values do not depend on each other.
  double error_of_mean() const;

  friend bool operator==(const LevelUse&, const LevelUse&) = default;
};

// Of a counter between two readings of it. One that is less than before was restarted from 0.
struct CounterUse {
  std::int64_t first = 0;
  std::int64_t last = 0;
  base::Instant first_at;  // unset: it was not read
  base::Instant last_at;
  std::int64_t grown = 0;

  bool is_known() const { return first_at.is_set(); }
  void add(std::int64_t value, base::Instant at);
  // `later` is of a time behind this one's. What it grew between the two belongs to the sum.
  void add(const CounterUse& later);

  friend bool operator==(const CounterUse&, const CounterUse&) = default;
};

}  // namespace gpu_platform::telemetry
