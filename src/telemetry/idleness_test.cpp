#include "telemetry/idleness.h"

#include <vector>

#include <gtest/gtest.h>

namespace gpu_platform::telemetry {
namespace {

using Percent = std::optional<std::uint32_t>;

// An attempt that is read each five seconds.
class IdlenessTest : public testing::Test {
 protected:
  static constexpr base::Duration kTick = base::seconds(5);

  void run(base::Duration time, std::vector<Percent> percent) {
    for (base::Duration passed; passed < time; passed += kTick) {
      now_ = now_ + kTick;
      age_ += kTick;
      idleness_.take(now_, age_, percent, rule_);
    }
  }

  IdleRule rule_;
  Idleness idleness_;
  base::Instant now_{base::hours(1000).value()};
  base::Duration age_;
};

TEST_F(IdlenessTest, ABurstAndThenNothingIsIdleOnceTheWindowIsPastIt) {
  run(base::minutes(40), {95, 97});
  EXPECT_FALSE(idleness_.is_idle());
  run(base::minutes(20), {0, 0});
  EXPECT_FALSE(idleness_.is_idle()) << "a third of the window was work";
  run(base::minutes(11), {0, 0});
  EXPECT_TRUE(idleness_.is_idle());
  EXPECT_GT(idleness_.idle_for(now_), base::Duration());
}

TEST_F(IdlenessTest, AJobThatLoadsItsDataIsNotIdleForTwoHours) {
  run(base::minutes(119), {0});
  EXPECT_FALSE(idleness_.is_idle());
  run(base::minutes(2), {0});
  EXPECT_TRUE(idleness_.is_idle()) << "it has used nothing in two hours";
}

TEST_F(IdlenessTest, TheFirstUseGivesTheJobHalfAnHour) {
  run(base::minutes(90), {0});
  run(base::minutes(1), {80});
  run(base::minutes(28), {0});
  EXPECT_FALSE(idleness_.is_idle());
  run(base::minutes(3), {0});
  EXPECT_TRUE(idleness_.is_idle());
}

TEST_F(IdlenessTest, WorkOnOneOfSeveralGpusIsUse) {
  run(base::hours(3), {100, 0, 0, 0, 0, 0, 0, 0});
  EXPECT_FALSE(idleness_.is_idle());
  EXPECT_EQ(idleness_.mean_percent(rule_), 13U);
}

TEST_F(IdlenessTest, RegularBurstsThatAreATenthOfTheTimeAreUse) {
  for (int i = 0; i < 20; ++i) {
    run(base::minutes(1), {100});
    run(base::minutes(9), {0});
  }
  EXPECT_FALSE(idleness_.is_idle());
}

TEST_F(IdlenessTest, WhatIsNotKnownIsNeverIdle) {
  run(base::hours(6), {std::nullopt});
  EXPECT_FALSE(idleness_.is_idle());
  EXPECT_FALSE(idleness_.is_known());
  run(base::hours(6), {0, std::nullopt});
  EXPECT_FALSE(idleness_.is_idle()) << "one of its GPUs is not known";
  EXPECT_FALSE(idleness_.mean_percent(rule_));
}

TEST_F(IdlenessTest, ALongGapBeginsTheWindowAnew) {
  run(base::hours(3), {0});
  ASSERT_TRUE(idleness_.is_idle());
  run(base::minutes(6), {std::nullopt});
  EXPECT_FALSE(idleness_.is_idle());
  run(base::minutes(29), {0});
  EXPECT_FALSE(idleness_.is_idle());
  run(base::minutes(2), {0});
  EXPECT_TRUE(idleness_.is_idle());
}

TEST_F(IdlenessTest, AShortGapDoesNotCountAndForgetsNothing) {
  run(base::minutes(125), {0});
  ASSERT_TRUE(idleness_.is_idle());
  run(base::minutes(2), {std::nullopt});
  EXPECT_FALSE(idleness_.is_idle());
  EXPECT_EQ(idleness_.idle_for(now_), base::Duration());
  run(base::seconds(10), {0});
  EXPECT_TRUE(idleness_.is_idle());
  EXPECT_GE(idleness_.idle_for(now_), base::minutes(7)) << "since before the gap";
}

TEST_F(IdlenessTest, WorkEndsIt) {
  run(base::hours(3), {0});
  ASSERT_TRUE(idleness_.is_idle());
  run(base::minutes(3), {100});
  EXPECT_FALSE(idleness_.is_idle());
  EXPECT_EQ(idleness_.idle_for(now_), base::Duration());
}

TEST_F(IdlenessTest, AWallClockThatJumpsBackSparesTheJob) {
  run(base::minutes(100), {0});
  age_ = base::hours(-1);
  run(base::minutes(60), {0});
  EXPECT_FALSE(idleness_.is_idle());
}

}  // namespace
}  // namespace gpu_platform::telemetry
