#include "scheduling/predict/estimate_scores.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace gpu_platform::scheduling {
namespace {

using model::ForecastBasis;

const base::Instant kNoon(1'700'000'000'000'000'000);

model::StartForecast foreseen(base::Duration by_limits, base::Duration p50 = {},
                              base::Duration p90 = {}) {
  model::StartForecast forecast;
  forecast.by_limits = kNoon + by_limits;
  if (p50 == base::Duration()) return forecast;
  forecast.p50 = kNoon + p50;
  forecast.p90 = kNoon + p90;
  forecast.basis = ForecastBasis::kHistory;
  return forecast;
}

TEST(EstimateScores, NothingIsSaidOfEstimatesThatNobodyMade) {
  EstimateScores scores;
  scores.add(foreseen(base::hours(1)), kNoon);
  EXPECT_TRUE(scores.score(ForecastBasis::kHardLimits));
  EXPECT_FALSE(scores.score(ForecastBasis::kHistory));
}

TEST(EstimateScores, LimitsAreHeldToThePromiseAndPredictionsToTheMiddle) {
  EstimateScores scores;
  scores.add(foreseen(base::hours(2), base::minutes(30), base::minutes(40)),
             kNoon + base::minutes(35));
  const auto limits = scores.score(ForecastBasis::kHardLimits);
  EXPECT_EQ(limits->p50, base::minutes(85));
  EXPECT_EQ(limits->p50_signed, base::minutes(-85));
  const auto history = scores.score(ForecastBasis::kHistory);
  EXPECT_EQ(history->p50_signed, base::minutes(5));
  EXPECT_EQ(history->by_then, 1U);
  scores.add(foreseen(base::hours(2), base::minutes(30), base::minutes(40)),
             kNoon + base::minutes(45));
  EXPECT_EQ(scores.score(ForecastBasis::kHistory)->by_then, 1U);
  EXPECT_EQ(scores.score(ForecastBasis::kHistory)->starts, 2U);
}

// Against all errors, the last of them sorted.
RC_GTEST_PROP(EstimateScores, QuantilesAreThoseOfTheLastErrors, ()) {
  const auto minutes = *rc::gen::nonEmpty(rc::gen::container<std::vector<int>>(
      *rc::gen::inRange<std::size_t>(1, 600), rc::gen::inRange(-100, 100)));
  EstimateScores scores;
  std::size_t by_then = 0;
  for (const int each : minutes) {
    scores.add(foreseen(base::hours(2)), kNoon + base::hours(2) + base::minutes(each));
    by_then += each <= 0 ? 1 : 0;
  }
  const std::size_t kept = std::min(minutes.size(), EstimateScores::kErrorsKept);
  std::vector<int> last(minutes.end() - static_cast<std::ptrdiff_t>(kept), minutes.end());
  std::ranges::sort(last);
  const auto score = *scores.score(ForecastBasis::kHardLimits);
  RC_ASSERT(score.starts == minutes.size());
  RC_ASSERT(score.by_then == by_then);
  RC_ASSERT(score.p50_signed == base::minutes(last[(kept + 1) / 2 - 1]));
  for (int& each : last) each = std::abs(each);
  std::ranges::sort(last);
  RC_ASSERT(score.p50 == base::minutes(last[(kept + 1) / 2 - 1]));
  RC_ASSERT(score.p90 == base::minutes(last[(9 * kept + 9) / 10 - 1]));
}

TEST(EstimateScores, WhatNoScoresHaveIsNotRestored) {
  EstimateScores scores;
  EXPECT_FALSE(scores.restore(ForecastBasis::kHistory, {1, 2, {base::minutes(1)}}));
  EXPECT_FALSE(scores.restore(ForecastBasis::kHistory, {0, 0, {base::minutes(1)}}));
  EXPECT_FALSE(scores.restore(ForecastBasis::kHistory, {3, 0, {}}));
  EXPECT_TRUE(scores.restore(ForecastBasis::kHistory, {3, 1, {base::minutes(1)}}));
  EXPECT_EQ(scores.score(ForecastBasis::kHistory)->starts, 3U);
}

}  // namespace
}  // namespace gpu_platform::scheduling
