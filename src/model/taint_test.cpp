#include "model/taint.h"

#include <gtest/gtest.h>

namespace gpu_platform::model {
namespace {

const Taint kDrained{TaintSource::kOperator, TaintEffect::kNoNewWork, "a fan is loud", "ann", {}};
const Taint kVanished{TaintSource::kDriver, TaintEffect::kOut, "not reported", "node", {}};

TEST(Taints, OfSeveralTheWorstDecidesAndAllAreTold) {
  Taints taints;
  EXPECT_EQ(worst_of(taints), nullptr);
  EXPECT_EQ(text_of(taints), "");
  set_taint(taints, kVanished);
  set_taint(taints, kDrained);
  EXPECT_EQ(taints, (Taints{kDrained, kVanished}));
  EXPECT_EQ(worst_of(taints)->source, TaintSource::kDriver);
  EXPECT_EQ(text_of(taints), "not reported; a fan is loud");
}

TEST(Taints, OfEqualOnesThatOfAPersonIsToldFirst) {
  Taint offline = kDrained;
  offline.effect = TaintEffect::kOut;
  Taints taints;
  set_taint(taints, kVanished);
  set_taint(taints, offline);
  EXPECT_EQ(text_of(taints), "a fan is loud; not reported");
}

TEST(Taints, HealthIsToldBeforeTheDriverAndLeavesAFaultToAnOperator) {
  const Taint lost{TaintSource::kHealth, TaintEffect::kOut, "GPU is lost", "health", {}};
  const Taint fault{TaintSource::kHealth, TaintEffect::kNoNewWork, "XID 79", "health", {}};
  Taints taints;
  set_taint(taints, kVanished);
  set_taint(taints, lost);
  EXPECT_EQ(text_of(taints), "GPU is lost; not reported");
  set_taint(taints, fault);
  EXPECT_EQ(text_of(taints), "not reported; XID 79");
  EXPECT_TRUE(is_an_operators_to_lift(fault));
  EXPECT_TRUE(is_an_operators_to_lift(kDrained));
  EXPECT_FALSE(is_an_operators_to_lift(lost));
  EXPECT_FALSE(is_an_operators_to_lift(kVanished));
}

TEST(Taints, WhatAvoidsAGpuDecidesNothingAndIsToldApart) {
  Taints taints;
  set_taint(taints, {TaintSource::kCluster, TaintEffect::kAvoided, "a pod has it", "cluster", {}});
  EXPECT_FALSE(decides_state(worst_of(taints)));
  EXPECT_EQ(text_of(taints), "");
  set_taint(taints, {TaintSource::kProcesses, TaintEffect::kAvoided, "pid 7", "node", {}});
  set_taint(taints, kDrained);
  EXPECT_TRUE(decides_state(worst_of(taints)));
  EXPECT_EQ(text_of(taints), "a fan is loud");
  EXPECT_EQ(text_of_avoided(taints),
            "unmanaged processes: pid 7; not available to the platform: a pod has it");
}

TEST(Taints, APartyReplacesAndLiftsItsOwnAlone) {
  Taints taints;
  set_taint(taints, kDrained);
  set_taint(taints, kVanished);
  Taint offline = kDrained;
  offline.effect = TaintEffect::kOut;
  set_taint(taints, offline);
  EXPECT_EQ(taints, (Taints{offline, kVanished}));
  lift_taint(taints, TaintSource::kDriver);
  EXPECT_EQ(taints, Taints{offline});
  EXPECT_EQ(find_taint(taints, TaintSource::kDriver), nullptr);
  lift_taint(taints, TaintSource::kDriver);
  EXPECT_EQ(taints, Taints{offline});
}

TEST(Taints, OneThatEndsByItselfSaysWhen) {
  Taint until = kDrained;
  until.until = base::Instant(1'800'000'000'500'000'000);
  EXPECT_EQ(text_of({until, kVanished}),
            "not reported; a fan is loud (until 2027-01-15T08:00:00Z)");
}

}  // namespace
}  // namespace gpu_platform::model
