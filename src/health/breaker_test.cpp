#include "health/breaker.h"

#include <gtest/gtest.h>

namespace gpu_platform::health {
namespace {

bool allows(const BreakerCounts& counts, const BreakerLimits& limits = {}) {
  const BreakerAnswer answer = ask_breaker(limits, counts, "H100");
  EXPECT_EQ(answer.is_allowed, answer.text.empty());
  return answer.is_allowed;
}

TEST(Breaker, StopsBeyondTenPercentOfAType) {
  EXPECT_TRUE(allows({.of_type = 100, .out_of_type = 9}));
  EXPECT_FALSE(allows({.of_type = 100, .out_of_type = 10}));
  EXPECT_EQ(ask_breaker({}, {.of_type = 100, .out_of_type = 10}, "H100").text,
            "health keeps 10 of 100 H100 out, and at most 10 may be: nothing more is done by "
            "itself; look at 'gpu-platform health', then drain what is sick");
}

TEST(Breaker, OneMayAlwaysGoHoweverFewThereAre) {
  EXPECT_TRUE(allows({.of_type = 4}));
  EXPECT_FALSE(allows({.of_type = 4, .out_of_type = 1}));
  EXPECT_TRUE(allows({.of_type = 1, .of_class = 1})) << "one GPU is the whole of its class";
}

TEST(Breaker, OnAMachineOfEightTwoMayGo) {
  EXPECT_FALSE(allows({.of_type = 7, .out_of_type = 1}));
  EXPECT_TRUE(allows({.of_type = 8, .out_of_type = 1, .of_class = 8, .out_of_class = 1}));
  EXPECT_FALSE(allows({.of_type = 8, .out_of_type = 2, .of_class = 8, .out_of_class = 2}));
  EXPECT_FALSE(allows({.of_type = 24, .out_of_type = 2}));
  EXPECT_TRUE(allows({.of_type = 30, .out_of_type = 2}));
}

TEST(Breaker, NeverTakesTheLastOfANodeClass) {
  EXPECT_FALSE(allows({.of_type = 1000, .out_of_type = 3, .of_class = 4, .out_of_class = 3}));
  EXPECT_TRUE(allows({.of_type = 1000, .out_of_type = 2, .of_class = 4, .out_of_class = 2}));
}

TEST(Breaker, IsNotAskedForWhatItDoesNotCount) {
  EXPECT_EQ(outage_of(Action::kAvoid), Outage::kNone);
  EXPECT_EQ(outage_of(Action::kDegrade), Outage::kDegraded);
  for (const Action action : {Action::kDrain, Action::kReset, Action::kOffline, Action::kReboot}) {
    EXPECT_EQ(outage_of(action), Outage::kOut) << to_string(action);
  }
  EXPECT_FALSE(needs_breaker({}, Outage::kNone));
  EXPECT_TRUE(needs_breaker({}, Outage::kDegraded));
  EXPECT_TRUE(needs_breaker({.outage = Outage::kDegraded}, Outage::kOut)) << "it gets worse";
  EXPECT_FALSE(needs_breaker({.outage = Outage::kDegraded}, Outage::kDegraded));
  EXPECT_FALSE(needs_breaker({.outage = Outage::kOut}, Outage::kDegraded));
  EXPECT_FALSE(needs_breaker({.is_proven = true}, Outage::kOut));
  EXPECT_TRUE(needs_breaker({.is_proven = true}, Outage::kDegraded));
}

TEST(Breaker, CountsDegradedGpusApart) {
  const BreakerGpu degraded{Outage::kDegraded, false, true};
  const BreakerGpu out{Outage::kOut, false, true};
  const BreakerGpu proven{Outage::kOut, true, true};
  BreakerCounts for_out;
  BreakerCounts for_degraded;
  for (const BreakerGpu& gpu : {degraded, out, proven, BreakerGpu{Outage::kOut}, BreakerGpu{}}) {
    count(gpu, Outage::kOut, for_out);
    count(gpu, Outage::kDegraded, for_degraded);
  }
  EXPECT_EQ(for_out.of_type, 5U);
  EXPECT_EQ(for_out.of_class, 3U);
  EXPECT_EQ(for_out.out_of_type, 2U);
  EXPECT_EQ(for_degraded.out_of_type, 3U);
  EXPECT_EQ(for_out.out_of_class, 2U) << "the last of a class is kept for any of them";
}

TEST(Breaker, HasAnAbsoluteBound) {
  EXPECT_FALSE(allows({.of_type = 2304, .out_of_type = 16}, {.at_most = 16}));
}

}  // namespace
}  // namespace gpu_platform::health
