#include "telemetry/points.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace gpu_platform::telemetry {

namespace {

// Magnitudes below 16 have a bucket each; above, each power of two has eight. The bucket of a
// magnitude is 8 * (exponent - 2) + its three bits behind the leading one, which is the magnitude
// itself up to 15. Negative values have the negative buckets, so that buckets ascend with values.
constexpr int kStepBits = 3;
constexpr std::uint64_t kSteps = 1U << kStepBits;
constexpr std::uint64_t kLeastOfMin = std::uint64_t{1} << 63;  // the magnitude of the least value

std::int16_t bucket_of_magnitude(std::uint64_t magnitude) {
  if (magnitude < 2 * kSteps) return static_cast<std::int16_t>(magnitude);
  const int shift = std::bit_width(magnitude) - 1 - kStepBits;
  return static_cast<std::int16_t>(static_cast<std::uint64_t>(shift) * kSteps +
                                   (magnitude >> shift));
}

std::uint64_t middle_of_magnitude(std::uint64_t bucket) {
  if (bucket < 2 * kSteps) return bucket;
  const std::uint64_t shift = std::min<std::uint64_t>(bucket / kSteps - 1, 63 - kStepBits);
  const std::uint64_t least = (kSteps + bucket % kSteps) << shift;
  return least + ((std::uint64_t{1} << shift) - 1) / 2;
}

}  // namespace

base::Duration step_of(Tier tier) {
  switch (tier) {
    case Tier::kRaw:
      break;
    case Tier::kMinute:
      return base::minutes(1);
    case Tier::kQuarterHour:
      return base::minutes(15);
  }
  return {};
}

Distribution::Distribution(std::span<const Bucket> buckets)
    : buckets_(buckets.begin(), buckets.end()) {
  for (const Bucket& bucket : buckets) count_ += bucket.times;
}

void Distribution::add(std::int64_t value, std::uint64_t times) {
  add_bucket(bucket_of(value), times);
}

void Distribution::add_bucket(std::int16_t number, std::uint64_t times) {
  if (times == 0) return;
  count_ += times;
  if (buckets_.empty() || buckets_.back().number < number) {
    buckets_.push_back({number, times});
    return;
  }
  const auto place = std::ranges::lower_bound(buckets_, number, {}, &Bucket::number);
  if (place->number == number) {
    place->times += times;
  } else {
    buckets_.insert(place, {number, times});
  }
}

// Both ascend: `place` walks along.
void Distribution::add(const Distribution& other) {
  count_ += other.count_;
  auto place = buckets_.begin();
  for (const Bucket& bucket : other.buckets_) {
    while (place != buckets_.end() && place->number < bucket.number) ++place;
    if (place != buckets_.end() && place->number == bucket.number) {
      place->times += bucket.times;
    } else {
      place = buckets_.insert(place, bucket);
    }
  }
}

std::optional<std::int64_t> Distribution::percentile(double share) const {
  CHECK(share > 0 && share <= 1);
  if (count_ == 0) return std::nullopt;
  // 0.07 * 100 is a little above 7 as a double: rounding up must not skip to the next value.
  constexpr double kRounding = 1e-12;
  const double wanted = std::ceil(share * static_cast<double>(count_) * (1 - kRounding));
  std::uint64_t seen = 0;
  for (const auto& [bucket, times] : buckets_) {
    seen += times;
    if (static_cast<double>(seen) >= wanted) return middle_of(bucket);
  }
  return middle_of(buckets_.back().number);
}

std::int16_t Distribution::bucket_of(std::int64_t value) {
  if (value >= 0) return bucket_of_magnitude(static_cast<std::uint64_t>(value));
  const std::uint64_t magnitude = 0 - static_cast<std::uint64_t>(value);
  return static_cast<std::int16_t>(-bucket_of_magnitude(magnitude));
}

std::int64_t Distribution::middle_of(std::int16_t bucket) {
  const std::uint64_t magnitude = middle_of_magnitude(static_cast<std::uint64_t>(std::abs(bucket)));
  if (magnitude < kLeastOfMin) {
    const auto value = static_cast<std::int64_t>(magnitude);
    return bucket < 0 ? -value : value;
  }
  return bucket < 0 ? std::numeric_limits<std::int64_t>::min()
                    : std::numeric_limits<std::int64_t>::max();
}

}  // namespace gpu_platform::telemetry
