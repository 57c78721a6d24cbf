#include "scheduling/predict/prediction_scores.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace gpu_platform::scheduling {
namespace {

using model::PredictionBasis;

const base::Instant kNoon(1'700'000'000'000'000'000);

model::StartPrediction predicted(base::Duration by_limits, base::Duration p50 = {},
                                 base::Duration p90 = {}) {
  model::StartPrediction prediction;
  prediction.by_limits = kNoon + by_limits;
  if (p50 == base::Duration()) return prediction;
  prediction.p50 = kNoon + p50;
  prediction.p90 = kNoon + p90;
  prediction.basis = PredictionBasis::kHistory;
  return prediction;
}

TEST(PredictionScores, NothingIsSaidOfPredictionsThatWereNotMade) {
  PredictionScores scores;
  scores.add(predicted(base::hours(1)), kNoon);
  EXPECT_TRUE(scores.score(PredictionBasis::kHardLimits));
  EXPECT_FALSE(scores.score(PredictionBasis::kHistory));
}

TEST(PredictionScores, LimitsAreHeldToThePromiseAndPredictionsToTheMiddle) {
  PredictionScores scores;
  scores.add(predicted(base::hours(2), base::minutes(30), base::minutes(40)),
             kNoon + base::minutes(35));
  const auto limits = scores.score(PredictionBasis::kHardLimits);
  EXPECT_EQ(limits->p50, base::minutes(85));
  EXPECT_EQ(limits->p50_signed, base::minutes(-85));
  const auto history = scores.score(PredictionBasis::kHistory);
  EXPECT_EQ(history->p50_signed, base::minutes(5));
  EXPECT_EQ(history->by_then, 1U);
  scores.add(predicted(base::hours(2), base::minutes(30), base::minutes(40)),
             kNoon + base::minutes(45));
  EXPECT_EQ(scores.score(PredictionBasis::kHistory)->by_then, 1U);
  EXPECT_EQ(scores.score(PredictionBasis::kHistory)->starts, 2U);
}

TEST(PredictionScores, CountWholeSeconds) {
  PredictionScores scores;
  scores.add(predicted(base::hours(1), base::minutes(30), base::minutes(40)),
             kNoon + base::hours(1) + base::milliseconds(900));
  EXPECT_EQ(scores.score(PredictionBasis::kHardLimits)->by_then, 1U);
  EXPECT_EQ(scores.score(PredictionBasis::kHardLimits)->p50, base::Duration());
  EXPECT_EQ(scores.score(PredictionBasis::kHistory)->p50_signed, base::minutes(30));
  scores.add(predicted(base::hours(1)), kNoon + base::hours(1) + base::seconds(1));
  EXPECT_EQ(scores.score(PredictionBasis::kHardLimits)->by_then, 1U);
}

// Against all errors, the last of them sorted.
RC_GTEST_PROP(PredictionScores, QuantilesAreThoseOfTheLastErrors, ()) {
  const auto minutes = *rc::gen::nonEmpty(rc::gen::container<std::vector<int>>(
      *rc::gen::inRange<std::size_t>(1, 600), rc::gen::inRange(-100, 100)));
  PredictionScores scores;
  std::size_t by_then = 0;
  for (const int each : minutes) {
    scores.add(predicted(base::hours(2)), kNoon + base::hours(2) + base::minutes(each));
    by_then += each <= 0 ? 1 : 0;
  }
  const std::size_t kept = std::min(minutes.size(), PredictionScores::kErrorsKept);
  std::vector<int> last(minutes.end() - static_cast<std::ptrdiff_t>(kept), minutes.end());
  std::ranges::sort(last);
  const auto score = *scores.score(PredictionBasis::kHardLimits);
  RC_ASSERT(score.starts == minutes.size());
  RC_ASSERT(score.by_then == by_then);
  RC_ASSERT(score.p50_signed == base::minutes(last[(kept + 1) / 2 - 1]));
  for (int& each : last) each = std::abs(each);
  std::ranges::sort(last);
  RC_ASSERT(score.p50 == base::minutes(last[(kept + 1) / 2 - 1]));
  RC_ASSERT(score.p90 == base::minutes(last[(9 * kept + 9) / 10 - 1]));
}

TEST(PredictionScores, WhatNoScoresHaveIsNotRestored) {
  PredictionScores scores;
  EXPECT_FALSE(scores.restore(PredictionBasis::kHistory, {1, 2, {base::minutes(1)}}));
  EXPECT_FALSE(scores.restore(PredictionBasis::kHistory, {0, 0, {base::minutes(1)}}));
  EXPECT_FALSE(scores.restore(PredictionBasis::kHistory, {3, 0, {}}));
  EXPECT_TRUE(scores.restore(PredictionBasis::kHistory, {3, 1, {base::minutes(1)}}));
  EXPECT_EQ(scores.score(PredictionBasis::kHistory)->starts, 3U);
}

}  // namespace
}  // namespace gpu_platform::scheduling
