#include "scheduling/order/growth.h"

#include <cmath>
#include <cstdint>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace gpu_platform::scheduling {
namespace {

TEST(Growth, OfHalfAHalfLifeIsTheRootOfTwo) {
  EXPECT_EQ(power_of_two(0, 7), kOne32);
  EXPECT_EQ(power_of_two(1, 2), 6'074'000'999U);  // 2^32 · 1.41421356…
}

RC_GTEST_PROP(Growth, IsTheExponentialToTheStatedError, ()) {
  const auto whole = *rc::gen::inRange<std::uint64_t>(1, std::uint64_t{1} << 62);
  const auto part = *rc::gen::inRange<std::uint64_t>(0, whole);
  const long double exact =
      std::exp2(static_cast<long double>(part) / static_cast<long double>(whole)) * kOne32;
  const auto power = static_cast<long double>(power_of_two(part, whole));
  RC_ASSERT(power <= exact);
  RC_ASSERT(exact - power < exact / (std::uint64_t{1} << 31) + 1);
}

RC_GTEST_PROP(Growth, NeverFalls, ()) {
  const auto whole = *rc::gen::inRange<std::uint64_t>(2, std::uint64_t{1} << 62);
  const auto part = *rc::gen::inRange<std::uint64_t>(1, whole);
  RC_ASSERT(power_of_two(part - 1, whole) <= power_of_two(part, whole));
  RC_ASSERT(power_of_two(part, whole) < 2 * kOne32);
}

}  // namespace
}  // namespace gpu_platform::scheduling
