#include "base/units.h"

#include <gtest/gtest.h>

#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "base/id.h"

namespace gpu_platform::base {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();

TEST(Units, HalvesThousandthsAndSeventhsOfAGpuAreExact) {
  for (const std::int64_t parts : {2, 4, 5, 7, 8, 1000}) {
    const GpuShare part(kWholeGpu.value() / parts);
    EXPECT_EQ(part * parts, kWholeGpu) << parts;
  }
}

TEST(Units, DurationsAreNanoseconds) {
  EXPECT_EQ(seconds(1), milliseconds(1000));
  EXPECT_EQ(hours(1), minutes(60));
  EXPECT_EQ(microseconds(1).value(), 1000);
  EXPECT_EQ(whole_milliseconds(nanoseconds(1'999'999)), 1);
  EXPECT_EQ(Instant(5) + nanoseconds(7), Instant(12));
  EXPECT_EQ(Instant(5) - Instant(12), nanoseconds(-7));
}

TEST(Units, ZeroIsNotATime) {
  EXPECT_FALSE(Instant().is_set());
  EXPECT_TRUE(Instant(1).is_set());
}

TEST(UnitsDeath, OverflowStopsTheProgram) {
  EXPECT_DEATH(static_cast<void>(Bytes(kMax) + Bytes(1)), "broken assumption");
  EXPECT_DEATH(static_cast<void>(Bytes(kLeast) - Bytes(1)), "broken assumption");
  EXPECT_DEATH(static_cast<void>(Duration(kMax / 2) * 3), "broken assumption");
  EXPECT_DEATH(static_cast<void>(Instant(kMax) + seconds(1)), "broken assumption");
}

template <class A, class B>
concept Comparable = requires(A a, B b) { a == b; };
template <class A, class B>
concept Addable = requires(A a, B b) { a + b; };

TEST(Units, DifferentKindsDoNotMix) {
  EXPECT_FALSE((Comparable<Bytes, GpuShare>));
  EXPECT_FALSE((Addable<Bytes, Duration>));
  EXPECT_FALSE((Addable<Instant, Instant>));
  EXPECT_FALSE((std::convertible_to<double, Bytes>));
  EXPECT_FALSE((std::convertible_to<std::int64_t, Bytes>));
}

TEST(Ids, OfDifferentKindsDoNotMixAndZeroIsNone) {
  using A = Id<struct ATag>;
  using B = Id<struct BTag>;
  EXPECT_FALSE((Comparable<A, B>));
  EXPECT_FALSE((std::convertible_to<std::uint64_t, A>));
  EXPECT_FALSE(A().valid());
  EXPECT_TRUE(A(1).valid());
  EXPECT_LT(A(1), A(2));
}

}  // namespace
}  // namespace gpu_platform::base
