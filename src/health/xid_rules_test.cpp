#include "health/xid_rules.h"

#include <gtest/gtest.h>

#include <vector>

namespace gpu_platform::health {
namespace {

std::vector<std::uint32_t> xids_that_keep_work_away() {
  std::vector<std::uint32_t> xids;
  for (const XidRule& rule : xid_rules()) {
    if (!rule.remedy.empty()) xids.push_back(rule.xid);
  }
  return xids;
}

TEST(XidRules, KeepWorkAwayOnlyAfterFaultsThatNoProgramCauses) {
  EXPECT_EQ(xids_that_keep_work_away(),
            (std::vector<std::uint32_t>{46, 48, 54, 62, 64, 79, 95, 110, 119, 120, 136, 140, 143,
                                        158, 167, 169, 171, 172}));
}

TEST(XidRules, ErrorOfAProgramIsNoFaultOfItsGpu) {
  for (const std::uint32_t xid : {13, 31, 43, 68, 69, 137}) {
    ASSERT_NE(find_xid_rule(xid), nullptr) << xid;
    EXPECT_EQ(find_xid_rule(xid)->cause, XidCause::kApplication) << xid;
  }
  for (const XidRule& rule : xid_rules()) {
    if (rule.cause == XidCause::kApplication) EXPECT_EQ(rule.remedy, "") << rule.xid;
  }
}

TEST(XidRules, SymptomIsNoVerdict) {
  for (const std::uint32_t xid : {45, 154}) {
    ASSERT_NE(find_xid_rule(xid), nullptr) << xid;
    EXPECT_EQ(find_xid_rule(xid)->cause, XidCause::kSymptom) << xid;
    EXPECT_EQ(find_xid_rule(xid)->remedy, "") << xid;
  }
}

TEST(XidRules, AFaultThatTheDriverHasDealtWithKeepsNoWorkAway) {
  for (const std::uint32_t xid : {63, 92, 93, 94, 121, 160}) {
    ASSERT_NE(find_xid_rule(xid), nullptr) << xid;
    EXPECT_EQ(find_xid_rule(xid)->cause, XidCause::kHardware) << xid;
    EXPECT_EQ(find_xid_rule(xid)->remedy, "") << xid;
  }
}

TEST(XidRules, NumberThatIsNotListedHasNoRule) {
  for (const std::uint64_t xid : {0UL, 12UL, 999UL, 79UL + (1UL << 32)}) {
    EXPECT_EQ(find_xid_rule(xid), nullptr) << xid;
  }
}

}  // namespace
}  // namespace gpu_platform::health
