#include "node/idle_limit.h"

#include <gtest/gtest.h>

namespace gpu_platform::node {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kNow = 100 * kSecond;

IdleLimit begun_idle(std::uint64_t limit_ms) {
  IdleLimit limit(limit_ms);
  limit.touch(kNow);
  return limit;
}

TEST(IdleLimit, CountsFromTheLastThatWasTypedOrPrinted) {
  IdleLimit limit = begun_idle(600'000);
  EXPECT_EQ(limit.deadline(), kNow + 600 * kSecond);
  limit.touch(kNow + 50 * kSecond);
  EXPECT_EQ(limit.deadline(), kNow + 650 * kSecond);
}

TEST(IdleLimit, IsNeverReachedWhereThereIsNoneOrNothingHasBegun) {
  EXPECT_EQ(begun_idle(0).deadline(), 0);
  EXPECT_EQ(begun_idle(0).announcement(), 0);
  EXPECT_EQ(IdleLimit(1000).deadline(), 0);
  EXPECT_EQ(IdleLimit(1000).announcement(), 0);
}

TEST(IdleLimit, IsAnnouncedAMinuteBeforeOrHalfOfAShorterTime) {
  EXPECT_EQ(begun_idle(600'000).announcement(), kNow + 540 * kSecond);
  EXPECT_EQ(begun_idle(20'000).announcement(), kNow + 10 * kSecond);
}

TEST(IdleLimit, IsAnnouncedOnceAndAgainAfterSomethingWasTyped) {
  IdleLimit limit = begun_idle(600'000);
  limit.announced();
  EXPECT_EQ(limit.announcement(), 0);
  EXPECT_NE(limit.deadline(), 0);
  limit.touch(kNow + kSecond);
  EXPECT_EQ(limit.announcement(), kNow + 541 * kSecond);
}

TEST(IdleLimit, DroppedItIsNeverReached) {
  IdleLimit limit = begun_idle(600'000);
  limit.drop();
  EXPECT_EQ(limit.deadline(), 0);
  EXPECT_EQ(limit.announcement(), 0);
}

TEST(IdleLimit, CountsNoTimeInWhichTheJobStandsStill) {
  IdleLimit limit = begun_idle(600'000);
  limit.pause(kNow + 100 * kSecond);
  limit.pause(kNow + 150 * kSecond);
  EXPECT_EQ(limit.deadline(), 0);
  EXPECT_EQ(limit.announcement(), 0);
  limit.go_on(kNow + 300 * kSecond);
  EXPECT_EQ(limit.deadline(), kNow + 800 * kSecond);
  limit.go_on(kNow + 400 * kSecond);
  EXPECT_EQ(limit.deadline(), kNow + 800 * kSecond);
}

TEST(IdleLimit, BeginsAnewWhereSomethingIsTypedWhileTheJobStandsStill) {
  IdleLimit limit = begun_idle(600'000);
  limit.pause(kNow + 100 * kSecond);
  limit.touch(kNow + 200 * kSecond);
  EXPECT_EQ(limit.deadline(), 0);
  limit.go_on(kNow + 300 * kSecond);
  EXPECT_EQ(limit.deadline(), kNow + 900 * kSecond);
  limit.pause(kNow + 400 * kSecond);
  limit.drop();
  limit.go_on(kNow + 500 * kSecond);
  EXPECT_EQ(limit.deadline(), 0);
}

TEST(IdleLimit, IsNotPausedBeforeItBegins) {
  IdleLimit limit(600'000);
  limit.pause(kNow);
  limit.go_on(kNow + kSecond);
  EXPECT_EQ(limit.deadline(), 0);
}

}  // namespace
}  // namespace gpu_platform::node
