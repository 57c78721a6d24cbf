#include "node/time_limit.h"

#include <gtest/gtest.h>

namespace gpu_platform::node {
namespace {

constexpr std::int64_t kOneSecond = 1'000'000'000;
constexpr std::int64_t kBegan = 100 * kOneSecond;

TimeLimit begun(std::uint64_t limit_ms, std::uint64_t warn_before_ms) {
  TimeLimit limit(limit_ms, warn_before_ms);
  limit.begin(kBegan);
  return limit;
}

TEST(TimeLimit, CountsFromTheStart) {
  EXPECT_EQ(begun(5000, 0).deadline(), kBegan + 5 * kOneSecond);
  EXPECT_EQ(begun(0, 0).deadline(), 0);
  EXPECT_EQ(begun(0, 1000).warning(), 0);
}

TEST(TimeLimit, WarnsBeforeTheEndAndAtOnceWhereThatHasPassed) {
  EXPECT_EQ(begun(60'000, 10'000).warning(), kBegan + 50 * kOneSecond);
  EXPECT_EQ(begun(5000, 10'000).warning(), kBegan);
  TimeLimit limit = begun(60'000, 10'000);
  limit.warned();
  EXPECT_EQ(limit.warning(), 0);
}

TEST(TimeLimit, ChangedBeforeTheStartCountsFromTheStartToo) {
  TimeLimit limit(5000, 0);
  limit.change(7000);
  limit.begin(kBegan);
  EXPECT_EQ(limit.deadline(), kBegan + 7 * kOneSecond);
}

TEST(TimeLimit, WarnsAgainOnlyOfALaterEnd) {
  TimeLimit limit = begun(60'000, 10'000);
  limit.warned();
  limit.change(30'000);
  EXPECT_EQ(limit.deadline(), kBegan + 30 * kOneSecond);
  EXPECT_EQ(limit.warning(), 0);
  limit.change(90'000);
  EXPECT_EQ(limit.warning(), kBegan + 80 * kOneSecond);
  limit.change(0);
  EXPECT_EQ(limit.deadline(), kBegan + 90 * kOneSecond);
}

TEST(TimeLimit, OfAnyLengthStaysInRange) {
  EXPECT_GT(begun(UINT64_MAX, UINT64_MAX).deadline(), kBegan);
  EXPECT_EQ(begun(UINT64_MAX, UINT64_MAX).warning(), kBegan);
}

}  // namespace
}  // namespace gpu_platform::node
