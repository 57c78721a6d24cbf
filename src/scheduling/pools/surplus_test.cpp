#include "scheduling/pools/surplus.h"

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "base/prng.h"

namespace gpu_platform::scheduling {
namespace {

using model::Organisation;

base::GpuShare whole_gpus(std::int64_t gpus) {
  return base::kWholeGpu * gpus;
}

QuotaSubject holder_of_team(std::string name) {
  return {model::QuotaHolder::kTeam, std::move(name)};
}

TEST(Surplus, IsFilledInProportionToWeights) {
  SurplusParts parts;
  parts[holder_of_team("a")] = {1, {}, whole_gpus(100), {}};
  parts[holder_of_team("b")] = {3, {}, whole_gpus(100), {}};
  fill(parts, whole_gpus(8));
  EXPECT_EQ(parts[holder_of_team("a")].share, whole_gpus(2));
  EXPECT_EQ(parts[holder_of_team("b")].share, whole_gpus(6));
}

TEST(Surplus, ThatATeamDoesNotWantGoesToTheOthersByWeight) {
  SurplusParts parts;
  parts[holder_of_team("a")] = {1, {}, whole_gpus(100), {}};
  parts[holder_of_team("b")] = {6, {}, whole_gpus(2), {}};
  parts[holder_of_team("c")] = {2, {}, whole_gpus(100), {}};
  fill(parts, whole_gpus(14));
  EXPECT_EQ(parts[holder_of_team("a")].share, whole_gpus(4));
  EXPECT_EQ(parts[holder_of_team("b")].share, whole_gpus(2));
  EXPECT_EQ(parts[holder_of_team("c")].share, whole_gpus(8));
}

TEST(Surplus, OfATeamWithoutWeightIsWhatNoOtherWants) {
  SurplusParts parts;
  parts[holder_of_team("a")] = {0, {}, whole_gpus(5), {}};
  parts[holder_of_team("b")] = {2, {}, whole_gpus(6), {}};
  fill(parts, whole_gpus(8));
  EXPECT_EQ(parts[holder_of_team("a")].share, whole_gpus(2));
  fill(parts, whole_gpus(6));
  EXPECT_EQ(parts[holder_of_team("a")].share, whole_gpus(0));
  EXPECT_EQ(parts[holder_of_team("b")].share, whole_gpus(6));
}

// No GPU is left that is wanted, and no part that wants more has less for its weight than
// another has.
TEST(Surplus, IsTheLargestLeastShareForItsWeight) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    base::Prng random(seed);
    SurplusParts parts;
    base::GpuShare wanted;
    for (std::uint64_t i = 0; i < 1 + random.below(6); ++i) {
      SurplusPart part{static_cast<std::uint32_t>(1 + random.below(5)),
                       {},
                       base::GpuShare(static_cast<std::int64_t>(random.below(200))),
                       {}};
      wanted += part.wanted;
      parts[holder_of_team(std::to_string(i))] = part;
    }
    const base::GpuShare surplus(static_cast<std::int64_t>(random.below(400)));
    fill(parts, surplus);
    base::GpuShare given;
    for (const auto& [holder, part] : parts) {
      given += part.share;
      ASSERT_LE(part.share, part.wanted);
    }
    ASSERT_EQ(given, std::min(wanted, surplus)) << "seed " << seed;
    for (const auto& [one, poor] : parts) {
      if (poor.share == poor.wanted) continue;
      for (const auto& [other, rich] : parts) {
        // What is rounded down is less than one unit for each part.
        const auto units = static_cast<std::int64_t>(parts.size());
        ASSERT_LE(rich.share.value() * poor.weight,
                  (poor.share.value() + units) * rich.weight + units * poor.weight)
            << "seed " << seed;
      }
    }
  }
}

// Returns the guarantees of a cluster of one type.
Guarantees of_common_pool(const Organisation& organisation, std::uint64_t gpus) {
  return guarantees_of(organisation, {{"H100-80GB", gpus}}).at("");
}

model::Organisation two_holders(std::optional<std::uint32_t> weight) {
  return {.teams = {{"a", {}, 1, {}, {.guaranteed_gpus = 4, .over_quota_weight = weight}},
                    {"b", {}, 1, {}, {.max_gpus = 5, .guaranteed_gpus = 2}}}};
}

TEST(Surplus, PartsCountRunningAndWaitingJobsAboveGuaranteesAsFarAsLimitsGo) {
  PoolBalance balance(std::make_shared<const Guarantees>(of_common_pool(two_holders(3), 10)));
  balance.add({holder_of_team("a"), whole_gpus(5), true});
  const SurplusParts parts = surplus_parts(balance, {{holder_of_team("a"), whole_gpus(9)},
                                                     {holder_of_team("b"), whole_gpus(9)},
                                                     {{}, whole_gpus(1)}});
  EXPECT_EQ(parts.at(holder_of_team("a")).held, whole_gpus(1));
  EXPECT_EQ(parts.at(holder_of_team("a")).wanted, whole_gpus(10));
  EXPECT_EQ(parts.at(holder_of_team("b")).wanted, whole_gpus(3)) << "max_gpus is 5";
  EXPECT_EQ(parts.at({}).wanted, whole_gpus(1));
  // 4 are guaranteed to none: 3 : 1 : 1, and each wants more than that.
  EXPECT_EQ(thousandths_of(parts.at(holder_of_team("a")).share), 2400U);
  EXPECT_FALSE(surplus_excess(parts, balance, holder_of_team("a")));
  balance.add({holder_of_team("a"), whole_gpus(2), true});
  const auto excess = surplus_excess(parts, balance, holder_of_team("a"));
  ASSERT_TRUE(excess);
  EXPECT_EQ(excess->held, 3000U);
  EXPECT_EQ(excess->name, "a");
}

TEST(Surplus, HasWhatOwnersLeaveIdleAndNoMore) {
  PoolBalance balance(std::make_shared<const Guarantees>(of_common_pool(two_holders(1), 6)));
  const WaitingGpus all{{{}, whole_gpus(9)}};
  EXPECT_EQ(surplus_parts(balance, all).at({}).share, whole_gpus(6));
  const WaitingGpus owners{{{}, whole_gpus(9)}, {holder_of_team("a"), whole_gpus(3)}};
  EXPECT_EQ(surplus_parts(balance, owners).at({}).share, whole_gpus(3));
}

TEST(Surplus, IsNotSharedByWeightWhereNoneIsSet) {
  const PoolBalance balance(
      std::make_shared<const Guarantees>(of_common_pool(two_holders(std::nullopt), 10)));
  EXPECT_TRUE(surplus_parts(balance, {{{}, whole_gpus(9)}}).empty());
}

}  // namespace
}  // namespace gpu_platform::scheduling
