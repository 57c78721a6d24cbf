#include "telemetry/rollup.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "base/prng.h"

namespace gpu_platform::telemetry {
namespace {

constexpr base::Instant kNoon{1'760'011'200'000'000'000};

MetricId gpu_metric(std::string_view name) {
  return metric_named(Of::kGpu, name).value();
}

base::Instant at(std::int64_t seconds) {
  return kNoon + base::seconds(seconds);
}

void take(Rollup& rollup, std::int64_t seconds, std::string_view name, std::int64_t value) {
  const Value values[] = {{gpu_metric(name), value}};
  rollup.take(at(seconds), values);
}

std::vector<RolledSpan> of_tier(Tier tier, const std::vector<RolledSpan>& spans) {
  std::vector<RolledSpan> found;
  for (const RolledSpan& span : spans) {
    if (span.tier == tier) found.push_back(span);
  }
  return found;
}

TEST(Rollup, FinishesAMinuteWhenTheNextBegins) {
  Rollup rollup;
  take(rollup, 0, "power_watts", 100);
  take(rollup, 59, "power_watts", 300);
  EXPECT_TRUE(rollup.finished().empty());
  take(rollup, 60, "power_watts", 7);
  const auto spans = rollup.finished();
  ASSERT_EQ(spans.size(), 1U);
  EXPECT_EQ(spans[0].tier, Tier::kMinute);
  ASSERT_EQ(spans[0].metrics.size(), 1U);
  EXPECT_EQ(spans[0].metrics[0].point, (Point{kNoon, 100, 300, 400, 2}));
  EXPECT_EQ(spans[0].metrics[0].spread, Distribution());
  EXPECT_TRUE(rollup.finished().empty()) << "they are given once";
}

TEST(Rollup, QuartersHaveTheSumOfTheirMinutesAndTheDistributionOfTheirSamples) {
  Rollup rollup;
  base::Prng random(1);
  Point sum;
  Distribution spread;
  for (int second = 0; second < 900; ++second) {
    const auto value = static_cast<std::int64_t>(random.below(700'000));
    take(rollup, second, "power_watts", value);
    spread.add(value);
  }
  rollup.finish();
  const auto spans = rollup.finished();
  const auto minutes = of_tier(Tier::kMinute, spans);
  ASSERT_EQ(minutes.size(), 15U);
  for (const RolledSpan& minute : minutes) {
    sum = joined(sum, minute.metrics.at(0).point, MetricKind::kLevel);
  }
  const auto quarters = of_tier(Tier::kQuarterHour, spans);
  ASSERT_EQ(quarters.size(), 1U);
  EXPECT_EQ(quarters[0].metrics.at(0).point, sum);
  EXPECT_EQ(quarters[0].metrics.at(0).spread, spread);
}

TEST(Rollup, TheGrowthUpToTheFirstSampleOfASpanBelongsToIt) {
  Rollup rollup;
  take(rollup, 0, "energy_mj", 1'000);
  take(rollup, 50, "energy_mj", 1'500);
  take(rollup, 80, "energy_mj", 1'700);
  rollup.finish();
  const auto minutes = of_tier(Tier::kMinute, rollup.finished());
  ASSERT_EQ(minutes.size(), 2U);
  EXPECT_EQ(minutes[0].metrics.at(0).point, (Point{at(0), 1'000, 1'500, 500, 2}));
  EXPECT_EQ(minutes[1].metrics.at(0).point, (Point{at(60), 1'500, 1'700, 200, 1}));
}

TEST(Rollup, ACounterThatIsRestartedCountsFromZero) {
  Rollup rollup;
  take(rollup, 0, "energy_mj", 1'000);
  take(rollup, 1, "energy_mj", 30);
  take(rollup, 2, "energy_mj", 50);
  rollup.finish();
  EXPECT_EQ(rollup.finished().at(0).metrics.at(0).point, (Point{at(0), 1'000, 50, 50, 3}));
}

TEST(Rollup, AMetricThatIsNotThereHasNoPoint) {
  Rollup rollup;
  take(rollup, 0, "power_watts", 100);
  take(rollup, 60, "temperature_c", 40);
  rollup.finish();
  const auto minutes = of_tier(Tier::kMinute, rollup.finished());
  ASSERT_EQ(minutes.size(), 2U);
  EXPECT_EQ(minutes[0].metrics.at(0).metric, gpu_metric("power_watts"));
  ASSERT_EQ(minutes[1].metrics.size(), 1U);
  EXPECT_EQ(minutes[1].metrics.at(0).metric, gpu_metric("temperature_c"));
}

TEST(Rollup, AClockThatIsSetBackGivesASpanTwiceAndLosesNothing) {
  Rollup rollup;
  const std::int64_t seconds[] = {0, 30, 61, 62, 31, 32, 63};
  for (const std::int64_t second : seconds) take(rollup, second, "power_watts", second);
  rollup.finish();
  std::map<base::Instant, Point> minutes;
  const auto spans = of_tier(Tier::kMinute, rollup.finished());
  EXPECT_EQ(spans.size(), 4U);
  for (const RolledSpan& span : spans) {
    Point& point = minutes[span.from];
    point = joined(point, span.metrics.at(0).point, MetricKind::kLevel);
  }
  EXPECT_EQ(minutes.at(at(0)), (Point{at(0), 0, 32, 0 + 30 + 31 + 32, 4}));
  EXPECT_EQ(minutes.at(at(60)), (Point{at(60), 61, 63, 61 + 62 + 63, 3}));
}

TEST(Rollup, FinishedEarlyASpanComesInTwoParts) {
  Rollup whole;
  Rollup parted;
  Point parts;
  for (int second = 0; second < 50; ++second) {
    take(whole, second, "energy_mj", second * second);
    take(parted, second, "energy_mj", second * second);
    if (second == 20) parted.finish();
  }
  whole.finish();
  parted.finish();
  for (const RolledSpan& span : of_tier(Tier::kMinute, parted.finished())) {
    parts = joined(parts, span.metrics.at(0).point, MetricKind::kCounter);
  }
  EXPECT_EQ(whole.finished().at(0).metrics.at(0).point, parts);
}

TEST(Rollup, ShowsTheOpenSpansAsTheyAre) {
  Rollup rollup;
  EXPECT_TRUE(rollup.open().empty());
  take(rollup, 905, "power_watts", 100);
  const auto open = rollup.open();
  ASSERT_EQ(open.size(), 2U);
  EXPECT_EQ(open[0].from, at(900));
  EXPECT_EQ(open[1].tier, Tier::kQuarterHour);
  EXPECT_EQ(open[1].metrics.at(0).spread.count(), 1U);
  rollup.finish();
  EXPECT_EQ(rollup.finished(), open);
  EXPECT_TRUE(rollup.open().empty());
}

TEST(Joined, IsTheSameInWhateverPartsItIsDone) {
  base::Prng random(2);
  const auto point = [&] {
    const auto least = static_cast<std::int64_t>(random.below(1'000));
    const auto most = least + static_cast<std::int64_t>(random.below(1'000));
    return Point{kNoon, least, most, most, static_cast<std::uint32_t>(random.below(5))};
  };
  for (int round = 0; round < 1'000; ++round) {
    const Point a = point();
    const Point b = point();
    const Point c = point();
    for (const MetricKind kind : {MetricKind::kLevel, MetricKind::kCounter}) {
      const Point left = joined(joined(a, b, kind), c, kind);
      const Point right = joined(a, joined(b, c, kind), kind);
      // Of three points without samples any is as good as the other.
      if (left.count > 0) {
        EXPECT_EQ(left, right);
      }
    }
  }
}

TEST(Joined, ASumBeyondTheRangeStaysAtItsEnd) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  const Point high{kNoon, kMax, kMax, kMax, 1};
  EXPECT_EQ(joined(high, high, MetricKind::kLevel).sum, kMax);
  const Point low{kNoon, kMin, kMin, kMin, 1};
  EXPECT_EQ(joined(low, low, MetricKind::kLevel).sum, kMin);
}

TEST(SpanBegin, IsAtOrBeforeTheInstantAlsoBefore1970) {
  EXPECT_EQ(span_begin(at(59), base::minutes(1)), kNoon);
  EXPECT_EQ(span_begin(kNoon, base::minutes(1)), kNoon);
  EXPECT_EQ(span_begin(base::Instant(-1), base::minutes(1)).unix_ns(), -60'000'000'000);
}

}  // namespace
}  // namespace gpu_platform::telemetry
