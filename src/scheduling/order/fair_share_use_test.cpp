#include "scheduling/order/fair_share_use.h"

#include <cmath>
#include <cstdlib>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/prng.h"
#include "scheduling/order/cluster_totals.h"
#include "scheduling/order/growth.h"
#include "scheduling/testing/world.h"

namespace gpu_platform::scheduling {
namespace {

constexpr base::Instant kBegin(1'700'000'000'000'000'000);
constexpr base::Duration kHour = base::hours(1);
constexpr base::Duration kHalfAnHour = base::minutes(30);
const Account kAnn{"", "ann"};
const Account kBob{"", "bob"};

std::uint64_t counted(const FairShareUse& use, const Account& account) {
  return use.accounts().at(account).counted;
}

TEST(FairShareUse, OfTheWholeClusterForAnHourIsSoManyMilliseconds) {
  FairShareUse use;
  use.count(kBegin, kHour);
  use.charge(kAnn, kOne32, {}, kBegin, kBegin + base::seconds(1), kHour * 1'000'000);
  use.count(kBegin + base::seconds(1), kHour * 1'000'000);
  EXPECT_NEAR(static_cast<double>(counted(use, kAnn)), 1000.0 * (1 << 22), 1 << 10);
}

TEST(FairShareUse, CountsHalfAfterAHalfLife) {
  FairShareUse use;
  use.count(kBegin, kHour);
  use.charge(kAnn, kOne32, {}, kBegin, kBegin + base::minutes(10), kHour);
  use.move_epoch(kBegin + kHour + base::minutes(10), kHour);
  use.charge(kBob, kOne32, {}, kBegin + kHour, kBegin + kHour + base::minutes(10), kHour);
  use.count(kBegin + kHour + base::minutes(10), kHour);
  EXPECT_NEAR(static_cast<double>(counted(use, kAnn)) / static_cast<double>(counted(use, kBob)),
              0.5, 1e-6);
}

TEST(FairShareUse, DoesNotChangeTheOrderOfAccountsWithTimeAlone) {
  FairShareUse use;
  use.count(kBegin, kHour);
  use.charge(kAnn, 1001, {}, kBegin, kBegin + kHalfAnHour, kHour);
  use.charge(kBob, 1000, {}, kBegin, kBegin + kHalfAnHour, kHour);
  for (int hours = 1; hours < 80; ++hours) {
    use.count(kBegin + kHour * hours, kHour);
    EXPECT_GE(counted(use, kAnn), counted(use, kBob));
  }
  EXPECT_EQ(counted(use, kAnn), 0U);
}

TEST(FairShareUse, KeepsItsValueWhenTheHalfLifeChanges) {
  FairShareUse use;
  use.count(kBegin, kHour);
  use.charge(kAnn, kOne32, {}, kBegin, kBegin + base::minutes(30), kHour);
  use.count(kBegin + base::minutes(30), kHour);
  use.change_half_life(kBegin + base::minutes(30), kHour, kHour * 5);
  EXPECT_EQ(use.epoch(), kBegin + base::minutes(30));
  EXPECT_NEAR(static_cast<double>(counted(use, kAnn)), 30.0 * 60 * 1000 * (1 << 22), 1e6);
}

TEST(FairShareUse, OfATeamThatIsNoMoreIsItsUsers) {
  FairShareUse use;
  use.count(kBegin, kHour);
  use.charge({"vision", "ann"}, kOne32, {}, kBegin, kBegin + kHalfAnHour, kHour);
  use.charge({"speech", "ann"}, kOne32, {}, kBegin, kBegin + kHalfAnHour, kHour);
  use.count(kBegin + kHour, kHour);
  use.follow({.teams = {{.name = "speech"}}});
  EXPECT_EQ(use.accounts().size(), 2U);
  EXPECT_EQ(counted(use, kAnn), counted(use, {"speech", "ann"}));
}

TEST(FairShareUse, KeepsTheTimeOfGpusWhateverPartOfTheClusterTheyAre) {
  FairShareUse use;
  use.count(kBegin, kHour);
  // Two GPUs for ten minutes, a tenth of the cluster, and then the same of one a hundred times as
  // large: one half-life later the first counts half.
  use.charge(kAnn, kOne32 / 10, base::kWholeGpu * 2, kBegin, kBegin + base::minutes(10), kHour);
  use.count(kBegin + base::minutes(10), kHour);
  const base::Instant later = kBegin + kHour + base::minutes(10);
  use.move_epoch(later, kHour);
  use.charge(kAnn, kOne32 / 1000, base::kWholeGpu * 2, kBegin + kHour, later, kHour);
  use.count(later, kHour);
  // As of the epoch, ten minutes before: by then the amounts have grown by 2^(1/6).
  const double whole = 7000.0 * 2 * 600'000;
  const double expected = (whole / 2 + whole) * std::exp2(1.0 / 6);
  EXPECT_NEAR(static_cast<double>(use.accounts().at(kAnn).counted_gpu_time), expected, 1000);
}

// However the same use is cut into charges and counts, it comes to the same but for rounding.
RC_GTEST_PROP(FairShareUse, DoesNotDependOnWhenItIsCounted, ()) {
  base::Prng random(*rc::gen::arbitrary<std::uint64_t>());
  const base::Duration half_life = base::minutes(static_cast<std::int64_t>(1 + random.below(600)));
  FairShareUse once;
  FairShareUse often;
  once.count(kBegin, half_life);
  often.count(kBegin, half_life);
  base::Instant at = kBegin;
  std::uint64_t charges = 0;
  for (std::uint64_t i = 0, n = 1 + random.below(50); i < n; ++i) {
    const base::Instant from = at;
    at = at + base::milliseconds(static_cast<std::int64_t>(1 + random.below(600'000)));
    const std::uint64_t part = random.below(kOne32);
    const base::GpuShare gpus = base::kWholeGpu * static_cast<std::int64_t>(random.below(9));
    for (FairShareUse* use : {&once, &often}) {
      use->move_epoch(at, half_life);
      use->charge(kAnn, part, gpus, from, at, half_life);
    }
    ++charges;
    if (random.chance(1, 2)) often.count(at, half_life);
  }
  once.count(at, half_life);
  often.count(at, half_life);
  const auto difference = static_cast<std::int64_t>(counted(once, kAnn) - counted(often, kAnn));
  RC_ASSERT(once.epoch() == often.epoch());
  RC_ASSERT(difference < 64 * static_cast<std::int64_t>(charges) + 64);
  RC_ASSERT(difference > -64 * static_cast<std::int64_t>(charges) - 64);
  const auto gpu_times = [&](const FairShareUse& use) {
    return static_cast<std::int64_t>(use.accounts().at(kAnn).counted_gpu_time);
  };
  RC_ASSERT(std::abs(gpu_times(once) - gpu_times(often)) <
            64 * static_cast<std::int64_t>(charges) + 64);
}

TEST(DominantPart, IsTheLargestOfGpusCpusAndMemory) {
  const model::Node big = node(1).gpus(8).cpus(64).memory(base::kGiB * 512);
  ClusterTotals totals;
  totals.add(shape_of(big));
  const auto held = [&](std::size_t gpus, std::uint32_t cpus, std::int64_t gib) {
    model::NodeAllocation part{.node = big.id, .cpus = cpus, .memory = base::kGiB * gib};
    for (std::uint32_t i = 0; i < gpus; ++i) part.grants.push_back({i, base::kWholeGpu, {}});
    HeldAmounts amounts;
    amounts.add(part, big, {});
    return dominant_part(amounts, totals, {});
  };
  EXPECT_EQ(held(2, 1, 1), kOne32 / 4);
  EXPECT_EQ(held(1, 32, 1), kOne32 / 2);
  EXPECT_EQ(held(1, 1, 384), kOne32 / 4 * 3);
  EXPECT_EQ(held(0, 0, 0), 0U);
}

TEST(DominantPart, CountsGpusByTheirWeight) {
  model::Node mixed = node(1).gpus(2).cpus(64);
  mixed.gpus[1].info.type = "T4-16GB";
  const std::vector<model::GpuWeight> weights = {{"H100", 3000}, {"T4-16GB", 1000}};
  ClusterTotals totals;
  totals.add(shape_of(mixed));
  EXPECT_EQ(totals.weighted_gpus(weights), 4000U);
  for (const std::uint32_t index : {0U, 1U}) {
    HeldAmounts amounts;
    amounts.add({.node = mixed.id, .grants = {{index, base::kWholeGpu, {}}}}, mixed, weights);
    EXPECT_EQ(dominant_part(amounts, totals, weights), index == 0 ? kOne32 / 4 * 3 : kOne32 / 4);
  }
  totals.remove(shape_of(mixed));
  EXPECT_EQ(totals, ClusterTotals());
}

}  // namespace
}  // namespace gpu_platform::scheduling
