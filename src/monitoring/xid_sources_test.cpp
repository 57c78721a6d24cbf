#include "monitoring/xid_sources.h"

#include <gtest/gtest.h>

namespace gpu_platform::monitoring {
namespace {

class XidSourcesTest : public ::testing::Test {
 protected:
  std::uint32_t tell(XidTeller teller, std::uint64_t xid, std::uint32_t count = 1,
                     const std::string& gpu = "a") {
    return sources_.take(teller, gpu, xid, count, now_ns_);
  }
  void pass(base::Duration time) { now_ns_ += time.value(); }

  XidSources sources_;
  std::int64_t now_ns_ = base::minutes(1).value();
};

TEST_F(XidSourcesTest, WhatTwoTellCountsOnceInEitherOrder) {
  EXPECT_EQ(tell(XidTeller::kDriver, 79), 1U);
  EXPECT_EQ(tell(XidTeller::kKernelLog, 79), 0U);
  EXPECT_EQ(tell(XidTeller::kOffTheBus, 79), 0U);
  EXPECT_EQ(tell(XidTeller::kKernelLog, 48), 1U);
  pass(base::milliseconds(130));
  EXPECT_EQ(tell(XidTeller::kDriver, 48), 0U);
}

TEST_F(XidSourcesTest, WhatOneTellsAgainCountsAgain) {
  EXPECT_EQ(tell(XidTeller::kKernelLog, 31), 1U);
  EXPECT_EQ(tell(XidTeller::kKernelLog, 31), 1U);
  EXPECT_EQ(tell(XidTeller::kDriver, 31), 0U);
  EXPECT_EQ(tell(XidTeller::kDriver, 31), 0U);
  EXPECT_EQ(tell(XidTeller::kDriver, 31), 1U);
}

TEST_F(XidSourcesTest, AStormIsAsLargeAsItsBestTellerSays) {
  std::uint64_t counted = 0;
  for (int i = 0; i < 100; ++i) {
    counted += tell(XidTeller::kKernelLog, 45, 1000);
    counted += tell(XidTeller::kDriver, 45, 700);
    pass(base::milliseconds(100));
  }
  EXPECT_EQ(counted, 100'000U);
}

TEST_F(XidSourcesTest, OtherGpusAndOtherXidsCountForThemselves) {
  EXPECT_EQ(tell(XidTeller::kDriver, 48), 1U);
  EXPECT_EQ(tell(XidTeller::kKernelLog, 48, 1, "b"), 1U);
  EXPECT_EQ(tell(XidTeller::kKernelLog, 63), 1U);
}

TEST_F(XidSourcesTest, AfterAPauseItIsAnotherOne) {
  EXPECT_EQ(tell(XidTeller::kDriver, 48), 1U);
  pass(XidSources::kQuiet);
  EXPECT_EQ(tell(XidTeller::kKernelLog, 48), 1U);
  EXPECT_EQ(tell(XidTeller::kDriver, 48), 0U);
}

}  // namespace
}  // namespace gpu_platform::monitoring
