#include "telemetry/points.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/prng.h"

namespace gpu_platform::telemetry {
namespace {

constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

// A value of any size and sign.
std::int64_t any_value(base::Prng& random) {
  return static_cast<std::int64_t>(random.next()) >> random.below(64);
}

Distribution of_values(const std::vector<std::int64_t>& values) {
  Distribution spread;
  for (const std::int64_t value : values) spread.add(value);
  return spread;
}

TEST(Distribution, HasNoPercentileWithoutValues) {
  EXPECT_EQ(Distribution().percentile(0.5), std::nullopt);
}

TEST(Distribution, IsExactUpToFifteen) {
  for (std::int64_t value = -15; value <= 15; ++value) {
    EXPECT_EQ(Distribution::middle_of(Distribution::bucket_of(value)), value);
  }
}

TEST(Distribution, BucketsAscendWithValues) {
  std::vector<std::int64_t> values = {kMin, kMin + 1, -1, 0, 1, 15, 16, 17, 18, kMax - 1, kMax};
  base::Prng random(1);
  for (int i = 0; i < 20'000; ++i) values.push_back(any_value(random));
  std::ranges::sort(values);
  std::int16_t last = Distribution::bucket_of(kMin);
  for (const std::int64_t value : values) {
    const std::int16_t bucket = Distribution::bucket_of(value);
    EXPECT_LE(last, bucket) << value;
    last = bucket;
  }
}

TEST(Distribution, AMiddleIsASixteenthAwayAtMost) {
  base::Prng random(2);
  std::vector<std::int64_t> values = {kMin, kMin + 1, kMax, 0, 1, -1};
  for (int i = 0; i < 20'000; ++i) values.push_back(any_value(random));
  for (const std::int64_t value : values) {
    const std::int16_t bucket = Distribution::bucket_of(value);
    const std::int64_t middle = Distribution::middle_of(bucket);
    const long double distance = std::fabs(static_cast<long double>(middle) - value);
    EXPECT_LE(distance * 16, std::fabs(static_cast<long double>(value))) << value;
    EXPECT_EQ(Distribution::bucket_of(middle), bucket) << value;
  }
}

TEST(Distribution, APercentileIsThatOfTheSortedValuesWithinItsBucket) {
  base::Prng random(3);
  for (int round = 0; round < 50; ++round) {
    std::vector<std::int64_t> values(1 + random.below(300));
    for (std::int64_t& value : values) value = static_cast<std::int64_t>(random.below(100'000));
    const Distribution spread = of_values(values);
    std::ranges::sort(values);
    for (const int percent : {1, 7, 50, 95, 99, 100}) {
      const std::size_t rank = (values.size() * static_cast<std::size_t>(percent) + 99) / 100;
      EXPECT_EQ(spread.percentile(percent / 100.0),
                Distribution::middle_of(Distribution::bucket_of(values[rank - 1])))
          << percent << " of " << values.size();
    }
  }
}

TEST(Distribution, PartsAddUpToTheWholeInAnyOrder) {
  base::Prng random(4);
  for (int round = 0; round < 100; ++round) {
    Distribution parts[3];
    Distribution whole;
    for (int i = 0; i < 90; ++i) {
      const std::int64_t value = any_value(random);
      parts[random.below(3)].add(value);
      whole.add(value);
    }
    Distribution left = parts[0];
    left.add(parts[1]);
    left.add(parts[2]);
    Distribution right = parts[2];
    right.add(parts[1]);
    right.add(parts[0]);
    EXPECT_EQ(left, whole);
    EXPECT_EQ(right, whole);
  }
}

TEST(Distribution, NoTimesLeaveNoBucket) {
  Distribution spread;
  spread.add(5, 0);
  EXPECT_EQ(spread, Distribution());
  spread.add(5, 3);
  EXPECT_EQ(spread.count(), 3U);
}

}  // namespace
}  // namespace gpu_platform::telemetry
