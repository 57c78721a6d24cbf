#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/units.h"

// Values over time at falling resolution.

namespace gpu_platform::telemetry {

// The resolutions that are kept. The numbers are in the history's files.
enum class Tier : std::uint8_t { kRaw = 0, kMinute = 1, kQuarterHour = 2 };
base::Duration step_of(Tier tier);  // 0 of kRaw

// The values of one metric in one span of time: a sample, a minute, or more. Exact: points of
// neighbouring spans add up.
struct Point {
  base::Instant from;       // the sample's time, or the begin of the span
  std::int64_t min = 0;     // of a counter: its value before the span
  std::int64_t max = 0;     // of a counter: its last value
  std::int64_t sum = 0;     // of a counter: by how much it grew; a restart counts from 0
  std::uint32_t count = 0;  // samples

  double mean() const { return count == 0 ? 0 : static_cast<double>(sum) / count; }
  friend bool operator==(const Point&, const Point&) = default;
};

// How often values fell into fixed buckets, whose bounds grow by an eighth of a power of two: a
// percentile is at most 1/16 of the value away. Buckets of parts add up to those of the whole, in
// any order.
class Distribution {
 public:
  struct Bucket {
    std::int16_t number = 0;  // as bucket_of() has it
    std::uint64_t times = 0;

    friend bool operator==(const Bucket&, const Bucket&) = default;
  };

  Distribution() = default;
  // Of buckets that ascend and have values.
  explicit Distribution(std::span<const Bucket> buckets);

  void add(std::int64_t value, std::uint64_t times = 1);
  void add(const Distribution& other);
  void add_bucket(std::int16_t number, std::uint64_t times);
  std::uint64_t count() const { return count_; }
  // 0 < share <= 1: the least bucket's middle that this share of the values does not exceed. None
  // without values.
  std::optional<std::int64_t> percentile(double share) const;
  // Those that have a value, ascending.
  const std::vector<Bucket>& buckets() const { return buckets_; }
  static std::int16_t bucket_of(std::int64_t value);
  static std::int64_t middle_of(std::int16_t bucket);

  friend bool operator==(const Distribution&, const Distribution&) = default;

 private:
  // A list: a query of a month reads a hundred thousand distributions of few buckets each.
  std::vector<Bucket> buckets_;
  std::uint64_t count_ = 0;
};

}  // namespace gpu_platform::telemetry
