#include "model/gpu_load.h"

#include <gtest/gtest.h>

namespace gpu_platform::model {
namespace {

constexpr base::Bytes kMemory{std::int64_t{80} << 30};

TEST(Availability, IsSixTenthsOfFreeMemoryAndFourTenthsOfIdleTime) {
  const LoadRules rules;
  EXPECT_EQ(availability({0, kMemory}, kMemory, rules), 1000U);
  EXPECT_EQ(availability({100, base::Bytes(0)}, kMemory, rules), 0U);
  EXPECT_EQ(availability({100, kMemory}, kMemory, rules), 600U);
  EXPECT_EQ(availability({0, base::Bytes(0)}, kMemory, rules), 400U);
  EXPECT_EQ(availability({50, base::kGiB * 40}, kMemory, rules), 500U);
}

TEST(Availability, FollowsTheWeights) {
  LoadRules rules;
  rules.memory_weight = 1;
  rules.utilization_weight = 3;
  EXPECT_EQ(availability({100, kMemory}, kMemory, rules), 250U);
  rules.memory_weight = rules.utilization_weight = 0;
  EXPECT_EQ(availability({100, base::Bytes(0)}, kMemory, rules), 1000U);
}

TEST(Availability, TakesOddReadings) {
  const LoadRules rules;
  EXPECT_EQ(availability({4000, base::kGiB * 200}, kMemory, rules), 600U);
  EXPECT_EQ(availability({0, base::Bytes(-5)}, kMemory, rules), 400U);
  EXPECT_EQ(availability({0, base::Bytes(0)}, base::Bytes(0), rules), 1000U);
}

TEST(WhyTooLoaded, NamesTheLimit) {
  const LoadRules rules;
  EXPECT_EQ(why_too_loaded({50, base::Bytes(std::int64_t{8000} << 20)}, rules), "");
  EXPECT_EQ(why_too_loaded({0, base::kGiB * 7}, rules),
            "7.0 GiB of its memory are free, and gpu_selection wants 7.8 GiB");
  EXPECT_EQ(why_too_loaded({55, kMemory}, rules),
            "others use it for 55 % of the time, and gpu_selection allows 50 %");
}

}  // namespace
}  // namespace gpu_platform::model
