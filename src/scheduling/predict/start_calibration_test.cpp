#include "scheduling/predict/start_calibration.h"

#include <gtest/gtest.h>

#include "base/prng.h"

namespace gpu_platform::scheduling {
namespace {

const base::Instant kMadeAt(1'700'000'000'000'000'000);

model::StartPrediction said(base::Duration p50, base::Duration p90, base::Duration by_limits,
                            std::uint64_t jobs_ahead = 0) {
  model::StartPrediction prediction;
  prediction.made_at = kMadeAt;
  prediction.by_limits = kMadeAt + by_limits;
  prediction.simulated_p50 = kMadeAt + p50;
  prediction.simulated_p90 = kMadeAt + p90;
  prediction.jobs_ahead = jobs_ahead;
  return prediction;
}

SimulatedStart simulated(base::Duration p50, base::Duration p90, base::Duration planned,
                         std::size_t jobs_ahead = 0, bool is_promised = false) {
  return {kMadeAt, jobs_ahead, {kMadeAt + p50, kMadeAt + p90}, kMadeAt + planned, is_promised};
}

TEST(StartCalibration, AFewErrorsCorrectNothing) {
  StartCalibration calibration;
  for (int i = 0; i < 19; ++i) {
    calibration.add(said(base::minutes(10), base::minutes(20), base::minutes(60)),
                    kMadeAt + base::minutes(40));
  }
  const auto start = simulated(base::minutes(10), base::minutes(20), base::minutes(60));
  EXPECT_EQ(calibration.corrections().corrected(start), start.start);
  EXPECT_FALSE(calibration.corrections().trust_in(start.planned, kMadeAt, 0));
}

// Starts are up to three times as late as the middle, and the simulated p90 is hardly later.
TEST(StartCalibration, NineInTenHoldAfterEnoughErrors) {
  base::Prng random(1);
  StartCalibration calibration;
  std::uint64_t by_p50 = 0;
  std::uint64_t by_p90 = 0;
  constexpr std::uint64_t kStarts = 2000;
  for (std::uint64_t i = 0; i < kStarts + 256; ++i) {
    const base::Duration wait = base::seconds(static_cast<std::int64_t>(60 + random.below(36'000)));
    const base::Duration p90(wait.value() / 10 * 11);
    const base::Duration planned(wait.value() * 5);
    const base::Duration real(wait.value() / 1000 * static_cast<std::int64_t>(random.below(3000)));
    const auto told = calibration.corrections().corrected(simulated(wait, p90, planned));
    if (i >= 256) {
      by_p50 += kMadeAt + real <= told.p50 ? 1 : 0;
      by_p90 += kMadeAt + real <= told.p90 ? 1 : 0;
    }
    calibration.add(said(wait, p90, planned), kMadeAt + real);
  }
  EXPECT_NEAR(static_cast<double>(by_p50) / kStarts, 0.5, 0.05);
  EXPECT_NEAR(static_cast<double>(by_p90) / kStarts, 0.9, 0.03);
}

TEST(StartCalibration, APlannedStartThatIsOftenLateSaysByWhenNineInTenStart) {
  StartCalibration calibration;
  for (int i = 0; i < 100; ++i) {
    const int minutes = i < 86 ? 30 : 179;
    calibration.add(said(base::minutes(20), base::minutes(40), base::minutes(119), 100),
                    kMadeAt + base::minutes(minutes));
  }
  const StartCorrections corrections = calibration.corrections();
  const auto trust = corrections.trust_in(kMadeAt + base::minutes(119), kMadeAt, 100);
  EXPECT_EQ(trust->starts, 100U);
  EXPECT_EQ(trust->by_then, 86U);
  EXPECT_EQ(trust->p90, kMadeAt + base::minutes(179));
  // So the predicted p90 may be later than the planned start, but not than a promised one.
  const auto late = [&](bool is_promised) {
    return corrections
        .corrected(
            simulated(base::minutes(60), base::minutes(119), base::minutes(119), 100, is_promised))
        .p90;
  };
  EXPECT_GT(late(false), kMadeAt + base::minutes(119));
  EXPECT_EQ(late(true), kMadeAt + base::minutes(119));
}

TEST(StartCalibration, AnotherDepthHelpsOutUntilItsOwnErrorsAreKnown) {
  StartCalibration calibration;
  const auto add = [&](std::uint64_t jobs_ahead, int minutes) {
    for (int i = 0; i < 20; ++i) {
      calibration.add(said(base::minutes(9), base::minutes(9), base::minutes(99), jobs_ahead),
                      kMadeAt + base::minutes(minutes));
    }
  };
  const auto p50 = [&](std::size_t jobs_ahead) {
    const auto start = simulated(base::minutes(9), base::minutes(9), base::minutes(99), jobs_ahead);
    return calibration.corrections().corrected(start).p50 - kMadeAt;
  };
  add(40, 19);
  EXPECT_EQ(p50(0), base::minutes(19));
  EXPECT_EQ(p50(200), base::minutes(19));
  add(8, 29);
  EXPECT_EQ(p50(7), base::minutes(29));
  EXPECT_EQ(p50(31), base::minutes(29));
  EXPECT_EQ(p50(32), base::minutes(19));
  EXPECT_EQ(p50(1000), base::minutes(19));
}

TEST(StartCalibration, KeepsTheLastErrorsAndIsRestoredFromThem) {
  StartCalibration calibration;
  for (int i = 0; i < 300; ++i) {
    calibration.add(said(base::minutes(9), base::minutes(9), base::minutes(99)),
                    kMadeAt + base::minutes(i));
  }
  const auto& outcomes = calibration.outcomes(0, StartBound::kP50);
  EXPECT_EQ(outcomes.size(), StartCalibration::kOutcomesKept);
  EXPECT_EQ(outcomes.back(), 30'000U);
  StartCalibration again;
  for (std::size_t bound = 0; bound < kStartBounds; ++bound) {
    const auto each = static_cast<StartBound>(bound);
    EXPECT_TRUE(again.restore(0, each, calibration.outcomes(0, each)));
  }
  EXPECT_EQ(again, calibration);
  EXPECT_FALSE(again.restore(0, StartBound::kP50, {StartCalibration::kLargest + 1}));
}

}  // namespace
}  // namespace gpu_platform::scheduling
