#include "api/identity/failure_throttle.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

namespace gpu_platform::api {
namespace {

constexpr base::Instant kFirstTry(1'700'000'000'000'000'000);
constexpr FailureThrottle::Limits kFewFailures{.failures = 3,
                                               .one_more_after = base::seconds(10),
                                               .failures_of_all = 10,
                                               .one_more_of_all_after = base::seconds(1),
                                               .known_for = base::hours(1),
                                               .addresses = 8};

TEST(FailureThrottle, AnAddressThatFailedTooOftenWaitsForEachFurtherTrial) {
  FailureThrottle throttle(kFewFailures);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(throttle.may_try("192.0.2.7", kFirstTry));
    throttle.failed("192.0.2.7", kFirstTry);
  }
  EXPECT_FALSE(throttle.may_try("192.0.2.7", kFirstTry));
  EXPECT_TRUE(throttle.may_try("192.0.2.8", kFirstTry)) << "others do not wait for it";
  EXPECT_FALSE(throttle.may_try("192.0.2.7", kFirstTry + base::seconds(9)));
  const base::Instant later = kFirstTry + base::seconds(10);
  EXPECT_TRUE(throttle.may_try("192.0.2.7", later));
  throttle.failed("192.0.2.7", later);
  EXPECT_FALSE(throttle.may_try("192.0.2.7", later));
  const base::Instant rested = later + base::seconds(30);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(throttle.may_try("192.0.2.7", rested));
    throttle.failed("192.0.2.7", rested);
  }
  EXPECT_FALSE(throttle.may_try("192.0.2.7", rested));
}

TEST(FailureThrottle, WhenAllFailTooOftenOnlyAddressesThatAreKnownMayTry) {
  FailureThrottle throttle(kFewFailures);
  throttle.succeeded("198.51.100.1", kFirstTry);
  for (int i = 0; i < 10; ++i) {
    const std::string address = fmt::format("192.0.2.{}", i);
    EXPECT_TRUE(throttle.may_try(address, kFirstTry));
    throttle.failed(address, kFirstTry);
  }
  EXPECT_FALSE(throttle.may_try("192.0.2.200", kFirstTry));
  EXPECT_TRUE(throttle.may_try("198.51.100.1", kFirstTry));
  EXPECT_TRUE(throttle.may_try("192.0.2.200", kFirstTry + base::seconds(1)));
  for (int i = 0; i < 3; ++i) throttle.failed("198.51.100.1", kFirstTry);
  EXPECT_FALSE(throttle.may_try("198.51.100.1", kFirstTry))
      << "its own failures count all the same";
  FailureThrottle forgetful(kFewFailures);
  forgetful.succeeded("198.51.100.1", kFirstTry);
  const base::Instant later = kFirstTry + base::hours(1);
  for (int i = 0; i < 10; ++i) forgetful.failed(fmt::format("192.0.2.{}", i), later);
  EXPECT_FALSE(forgetful.may_try("198.51.100.1", later)) << "an hour later it is one of many";
}

TEST(FailureThrottle, ItsMemoryIsBoundedAndKeepsWhoWorksAndWhoFails) {
  FailureThrottle throttle(kFewFailures);
  throttle.succeeded("198.51.100.1", kFirstTry);
  for (int i = 0; i < 3; ++i) throttle.failed("192.0.2.250", kFirstTry);
  for (int i = 0; i < 200; ++i) throttle.failed(fmt::format("192.0.2.{}", i), kFirstTry);
  EXPECT_EQ(throttle.size(), 8u);
  EXPECT_TRUE(throttle.may_try("198.51.100.1", kFirstTry));
  EXPECT_FALSE(throttle.may_try("192.0.2.250", kFirstTry));
}

TEST(FailureThrottle, AClockThatIsSetBackKeepsNobodyOutForLong) {
  FailureThrottle throttle(kFewFailures);
  for (int i = 0; i < 3; ++i) throttle.failed("192.0.2.7", kFirstTry + base::hours(24));
  EXPECT_FALSE(throttle.may_try("192.0.2.7", kFirstTry));
  throttle.failed("192.0.2.7", kFirstTry);
  EXPECT_FALSE(throttle.may_try("192.0.2.7", kFirstTry));
  EXPECT_TRUE(throttle.may_try("192.0.2.7", kFirstTry + base::seconds(10)));
}

TEST(FailureThrottle, TheNetworkOfAnIpv6HostIsOneAddress) {
  EXPECT_EQ(address_group("192.0.2.7"), "192.0.2.7");
  EXPECT_EQ(address_group("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64");
  EXPECT_EQ(address_group("2001:db8:1:2:ffff::"), "2001:db8:1:2::/64");
  EXPECT_EQ(address_group("fe80::1%eth0"), "fe80::/64");
  EXPECT_EQ(address_group("::ffff:192.0.2.7"), "192.0.2.7");
  EXPECT_EQ(address_group("\nforged line"), "unknown");
  EXPECT_EQ(address_group(""), "unknown");
}

}  // namespace
}  // namespace gpu_platform::api
