#include "accounting/exact_cost.h"

#include <gtest/gtest.h>

#include "accounting/testing/ledger_lines.h"
#include "base/prng.h"

namespace gpu_platform::accounting {
namespace {

using testing::kHourMs;

TEST(ExactCost, IsThePriceForAWholeGpuAndAnHour) {
  const ExactCost cost = gpu_cost(base::kWholeGpu, kHourMs, base::MicroUsd(4'100'000));
  EXPECT_EQ(cost, ExactCost(base::MicroUsd(4'100'000)));
  EXPECT_EQ(cost.rounded(), base::MicroUsd(4'100'000));
}

TEST(ExactCost, OfSeventhsAddsUpToTheWhole) {
  ExactCost sum;
  for (int i = 0; i < 7; ++i) sum += gpu_cost(base::GpuShare(1000), 1, base::MicroUsd(1));
  EXPECT_EQ(sum, gpu_cost(base::kWholeGpu, 1, base::MicroUsd(1)));
  EXPECT_GT(sum, ExactCost());
}

TEST(ExactCost, IsLessByTheDiscount) {
  const base::MicroUsd price(4'000'000);
  EXPECT_EQ(gpu_cost(base::kWholeGpu, kHourMs, price, 2'500).rounded(), base::MicroUsd(3'000'000));
  EXPECT_EQ(gpu_cost(base::kWholeGpu, kHourMs, price, 10'000), ExactCost());
}

TEST(ExactCost, OfCoresAndMemoryHasPartsOfAGib) {
  const ExactCost cost = cpu_cost(4, base::MicroUsd(30'000), 1536, base::MicroUsd(2'000), kHourMs);
  EXPECT_EQ(cost.rounded(), base::MicroUsd(4 * 30'000 + 3'000));
}

TEST(ExactCost, RoundsHalvesAwayFromZeroAndFloorsDown) {
  const ExactCost half(kUnitsPerMicro / 2);
  EXPECT_EQ(half.rounded(), base::MicroUsd(1));
  EXPECT_EQ((ExactCost() - half).rounded(), base::MicroUsd(-1));
  EXPECT_EQ(ExactCost(kUnitsPerMicro / 2 - 1).rounded(), base::MicroUsd(0));
  EXPECT_EQ(half.floor(), base::MicroUsd(0));
  EXPECT_EQ((ExactCost() - half).floor(), base::MicroUsd(-1));
}

TEST(ExactCost, IsStoredInTwoHalves) {
  for (const __int128 units :
       {__int128{0}, __int128{-1}, kUnitsPerMicro * 123'456'789, kUnitsPerMicro * -987}) {
    EXPECT_EQ(ExactCost(ExactCost(units).stored()), ExactCost(units));
  }
}

TEST(Rounder, MakesLinesThatAddUpToTheirRoundedTotal) {
  base::Prng random(7);
  Rounder rounder;
  ExactCost exact;
  base::MicroUsd shown;
  for (int i = 0; i < 1000; ++i) {
    const ExactCost line(static_cast<__int128>(random.next() >> 8) * 1'000'003);
    exact += line;
    shown += rounder.next(line);
    ASSERT_EQ(shown, exact.rounded());
  }
}

TEST(Rounder, ChangesALineByLessThanAMillionth) {
  Rounder rounder;
  const ExactCost third(kUnitsPerMicro / 3);
  EXPECT_EQ(rounder.next(third), base::MicroUsd(0));
  EXPECT_EQ(rounder.next(third), base::MicroUsd(1));
  EXPECT_EQ(rounder.next(third), base::MicroUsd(0));
}

}  // namespace
}  // namespace gpu_platform::accounting
