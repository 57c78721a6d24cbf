#include "telemetry/level_use.h"

#include <algorithm>
#include <cmath>

namespace gpu_platform::telemetry {

namespace {

// Stored numbers may be anything, so nothing here overflows.
std::int64_t sum_of(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

std::int64_t grown_by(std::int64_t from, std::int64_t to) {
  if (to < from) return to;
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(to) -
                                   static_cast<std::uint64_t>(from));
}

}  // namespace

void LevelUse::add(std::int64_t value) {
  min = count == 0 ? value : std::min(min, value);
  max = count == 0 ? value : std::max(max, value);
  ++count;
  sum += value;
  squares += static_cast<Squares>(static_cast<Sum>(value) * value);
  spread.add(value);
}

void LevelUse::add(const LevelUse& other) {
  if (other.count == 0) return;
  min = count == 0 ? other.min : std::min(min, other.min);
  max = count == 0 ? other.max : std::max(max, other.max);
  count += other.count;
  sum += other.sum;
  squares += other.squares;
  spread.add(other.spread);
}

double LevelUse::mean() const {
  return count == 0 ? 0 : static_cast<double>(sum) / static_cast<double>(count);
}

double LevelUse::deviation() const {
  if (count < 2 || min == max) return 0;
  const auto values = static_cast<long double>(count);
  const long double mean_value = static_cast<long double>(sum) / values;
  const long double total = static_cast<long double>(squares) - mean_value * mean_value * values;
  return total <= 0 ? 0 : static_cast<double>(std::sqrt(total / (values - 1)));
}

double LevelUse::error_of_mean() const {
  return count == 0 ? 0 : deviation() / std::sqrt(static_cast<double>(count));
}

void CounterUse::add(std::int64_t value, base::Instant at) {
  if (!is_known()) {
    *this = {value, value, at, at, 0};
    return;
  }
  grown = sum_of(grown, grown_by(last, value));
  last = value;
  last_at = std::max(last_at, at);
}

void CounterUse::add(const CounterUse& later) {
  if (!later.is_known()) return;
  if (!is_known()) {
    *this = later;
    return;
  }
  grown = sum_of(grown, sum_of(grown_by(last, later.first), later.grown));
  last = later.last;
  last_at = std::max(last_at, later.last_at);
}

}  // namespace gpu_platform::telemetry
