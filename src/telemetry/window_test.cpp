#include "telemetry/window.h"

#include <gtest/gtest.h>

#include "base/prng.h"
#include "telemetry/rollup.h"

namespace gpu_platform::telemetry {
namespace {

constexpr base::Instant kNoon{1'760'011'200'000'000'000};

base::Instant at(std::int64_t seconds) {
  return kNoon + base::seconds(seconds);
}

MetricId power() {
  return metric_named(Of::kGpu, "power_watts").value();
}
MetricId energy() {
  return metric_named(Of::kGpu, "energy_mj").value();
}

struct Kept {
  KeptSeries series;
  std::vector<Sample> all;
};

// Two hours of samples, each second, rolled up, with all of it in each tier.
Kept two_hours(MetricId metric, std::uint64_t seed) {
  base::Prng random(seed);
  Kept kept;
  Rollup rollup;
  std::int64_t value = 1'000;
  for (int second = 0; second < 7'200; ++second) {
    const auto drawn = static_cast<std::int64_t>(random.below(700'000));
    value = metric == energy() ? value + drawn : drawn;
    const Value values[] = {{metric, value}};
    rollup.take(at(second), values);
    kept.all.push_back({at(second), value});
  }
  rollup.finish();
  for (const RolledSpan& span : rollup.finished()) {
    const RolledMetric& rolled = span.metrics.at(0);
    if (span.tier == Tier::kMinute) {
      kept.series.minutes.push_back(rolled.point);
    } else {
      kept.series.quarters.push_back(rolled.point);
      if (metric != power()) continue;
      kept.series.spreads.push_back({span.from, span.from + base::minutes(15), rolled.spread});
    }
  }
  kept.series.samples = kept.all;
  kept.series.samples_since = kept.series.minutes_since = kept.series.quarters_since = kNoon;
  return kept;
}

// Drops what a tier has before the time, as the history does with old samples.
void forget_samples(KeptSeries& kept, base::Instant before) {
  kept.samples_since = before;
  std::erase_if(kept.samples, [&](const Sample& sample) { return sample.at < before; });
}
void forget_minutes(KeptSeries& kept, base::Instant before) {
  kept.minutes_since = before;
  std::erase_if(kept.minutes, [&](const Point& point) { return point.from < before; });
}

HistoryQuery query_of(base::Instant from, base::Instant to, base::Duration step) {
  return {.subjects = {}, .metrics = {}, .from = from, .to = to, .step = step};
}

Point sum_of(const std::vector<Sample>& samples, base::Instant from, base::Instant to) {
  Point sum;
  for (const Sample& sample : samples) {
    if (sample.at < from || sample.at >= to) continue;
    const Point one{sample.at, sample.value, sample.value, sample.value, 1};
    sum = joined(sum, one, MetricKind::kLevel);
  }
  return sum;
}

TEST(Answer, WithoutAStepIsTheSamplesWhereTheyAreKept) {
  const Kept kept = two_hours(power(), 1);
  const Series series = answer(query_of(at(10), at(13), {}), {}, power(), kept.series);
  EXPECT_EQ(series.step, base::Duration());
  ASSERT_EQ(series.points.size(), 3U);
  EXPECT_EQ(series.points[0].from, at(10));
  EXPECT_EQ(series.points[2].max, kept.all[12].value);
  EXPECT_EQ(series.whole(), sum_of(kept.all, at(10), at(13)));
}

TEST(Answer, BeforeTheSamplesIsWhatIsKept) {
  Kept kept = two_hours(power(), 2);
  forget_samples(kept.series, at(3'600));
  EXPECT_EQ(step_of_answer(query_of(at(0), at(60), {}), kept.series), base::minutes(1));
  EXPECT_EQ(step_of_answer(query_of(at(0), at(60), base::seconds(90)), kept.series),
            base::minutes(2));
  forget_minutes(kept.series, at(3'600));
  EXPECT_EQ(step_of_answer(query_of(at(0), at(60), {}), kept.series), base::minutes(15));
  EXPECT_EQ(step_of_answer(query_of(at(3'600), at(3'700), {}), kept.series), base::Duration());
}

TEST(Answer, OfAGpuThatIsNewerThanTheWindowIsItsSamples) {
  Kept kept = two_hours(power(), 3);
  forget_samples(kept.series, at(7));
  EXPECT_EQ(step_of_answer(query_of(at(-86'400), at(60), {}), kept.series), base::Duration());
}

TEST(Answer, CountsNothingTwiceWhereverTheSeamsLie) {
  base::Prng random(4);
  const Kept whole = two_hours(power(), 4);
  for (int round = 0; round < 60; ++round) {
    Kept kept = whole;
    const auto seam = static_cast<std::int64_t>(random.below(7'200));
    forget_samples(kept.series, at(seam));
    if (random.chance(1, 2)) {
      const auto older = static_cast<std::int64_t>(random.below(7'200)) / 60 * 60;
      forget_minutes(kept.series, at(older));
    }
    const base::Duration steps[] = {base::minutes(15), base::minutes(30), base::hours(1)};
    const Series series =
        answer(query_of(at(0), at(7'200), steps[random.below(3)]), {}, power(), kept.series);
    EXPECT_EQ(series.whole(), sum_of(whole.all, at(0), at(7'200))) << "samples since " << seam;
  }
}

TEST(Answer, ACounterGrowsByTheSameWhereverTheSeamsLie) {
  base::Prng random(5);
  const Kept whole = two_hours(energy(), 5);
  const std::int64_t grown = whole.all.back().value - whole.all.front().value;
  for (int round = 0; round < 60; ++round) {
    Kept kept = whole;
    forget_samples(kept.series, at(static_cast<std::int64_t>(random.below(7'200))));
    const Series series =
        answer(query_of(at(0), at(7'200), base::minutes(15)), {}, energy(), kept.series);
    EXPECT_EQ(series.whole().sum, grown);
    EXPECT_EQ(series.whole().max, whole.all.back().value);
    EXPECT_FALSE(series.spread);
  }
}

TEST(Answer, EndsWithinAMinuteAreExactWithSamples) {
  const Kept kept = two_hours(power(), 6);
  const Series series =
      answer(query_of(at(30), at(3'645), base::minutes(15)), {}, power(), kept.series);
  EXPECT_EQ(series.whole().count, 3'615U);
  ASSERT_EQ(series.points.size(), 5U);
  EXPECT_EQ(series.points[0].from, at(0));
  EXPECT_EQ(series.points[0].count, 870U);
  EXPECT_EQ(series.points[4].from, at(3'600));
}

TEST(Answer, OddStepsBeginWithTheHour) {
  const Kept kept = two_hours(power(), 7);
  const Series series =
      answer(query_of(at(900), at(2'000), base::minutes(7)), {}, power(), kept.series);
  ASSERT_FALSE(series.points.empty());
  EXPECT_EQ(series.points[0].from, at(840));
}

TEST(Answer, SpansThatComeTwiceAreAdded) {
  KeptSeries kept;
  kept.minutes_since = at(0);
  kept.minutes = {{at(60), 5, 9, 14, 2}, {at(0), 1, 1, 1, 1}, {at(60), 2, 2, 2, 1}};
  const Series series = answer(query_of(at(0), at(120), {}), {}, power(), kept);
  ASSERT_EQ(series.points.size(), 2U);
  EXPECT_EQ(series.points[1], (Point{at(60), 2, 9, 16, 3}));
}

TEST(Answer, SpansWithoutSamplesAreLeftOut) {
  KeptSeries kept;
  kept.samples_since = at(0);
  kept.samples = {{at(5), 1}, {at(305), 2}};
  const Series series = answer(query_of(at(0), at(600), base::minutes(1)), {}, power(), kept);
  ASSERT_EQ(series.points.size(), 2U);
  EXPECT_EQ(series.points[1].from, at(300));
}

TEST(Answer, TheSpreadOfSamplesIsThatOfTheWindow) {
  const Kept kept = two_hours(power(), 8);
  HistoryQuery query = query_of(at(100), at(2'000), base::minutes(1));
  query.wants_spread = true;
  const Series series = answer(query, {}, power(), kept.series);
  Distribution expected;
  for (const Sample& sample : kept.all) {
    if (sample.at >= query.from && sample.at < query.to) expected.add(sample.value);
  }
  EXPECT_EQ(series.spread, expected);
  EXPECT_FALSE(series.is_spread_wide);
}

TEST(Answer, TheSpreadOfQuartersSaysWhetherItIsWider) {
  Kept kept = two_hours(power(), 9);
  forget_samples(kept.series, at(7'000));
  HistoryQuery query = query_of(at(100), at(3'600), base::minutes(15));
  query.wants_spread = true;
  Series series = answer(query, {}, power(), kept.series);
  EXPECT_EQ(series.spread.value().count(), 3'600U);
  EXPECT_TRUE(series.is_spread_wide);
  query.from = at(900);
  series = answer(query, {}, power(), kept.series);
  EXPECT_EQ(series.spread.value().count(), 2'700U);
  EXPECT_FALSE(series.is_spread_wide);
}

// The quarter in which the samples begin has its own distribution: they are not counted beside it.
TEST(Answer, TheSpreadCountsNothingTwiceAtTheSeam) {
  Kept kept = two_hours(power(), 10);
  forget_samples(kept.series, at(4'000));
  HistoryQuery query = query_of(at(0), at(7'200), base::minutes(15));
  query.wants_spread = true;
  EXPECT_EQ(answer(query, {}, power(), kept.series).spread.value().count(), 7'200U);
}

TEST(Answer, OfNothingHasNoPoints) {
  const Series series = answer(query_of(at(0), at(60), {}), {}, power(), {});
  EXPECT_TRUE(series.points.empty());
  EXPECT_EQ(series.whole(), Point());
}

}  // namespace
}  // namespace gpu_platform::telemetry
