#include "accounting/savings.h"

#include <gtest/gtest.h>

#include "accounting/testing/ledger_lines.h"
#include "base/prng.h"

namespace gpu_platform::accounting {
namespace {

constexpr model::Millis kSpotHour = testing::kHourMs;
constexpr Span kSpotWindow = {testing::kOctober, testing::kOctober + 100 * kSpotHour};

// The price 1 of ledger_lines.h, 4, is what it paid; that of on-demand capacity is the price 2, 6.
model::LedgerLine spot_line(std::string team, int from_hour, int to_hour) {
  model::LedgerLine line =
      testing::used_line(std::move(team), testing::kOctober + from_hour * kSpotHour,
                         testing::kOctober + to_hour * kSpotHour);
  line.capacity = model::CapacityClass::kSpot;
  return line;
}

SpotUse spot_total(const std::vector<model::LedgerLine>& lines,
                   const model::PriceBook& prices = testing::two_prices()) {
  SpotSavings savings(kSpotWindow, prices);
  for (const model::LedgerLine& line : lines) savings.add(line);
  return savings.total();
}

TEST(SpotSavings, AreTheDifferenceToThePriceOfOnDemandCapacity) {
  model::LedgerLine line = spot_line("vision", 0, 2);
  line.discount = 1'000;
  const SpotUse use = spot_total({line});
  EXPECT_TRUE(use.time == __int128{14'000} * kSpotHour);
  EXPECT_EQ(use.paid.rounded(), base::MicroUsd(7'200'000));
  EXPECT_EQ(use.on_demand.rounded(), base::MicroUsd(10'800'000));
  EXPECT_EQ(use.saved().rounded(), base::MicroUsd(3'600'000));
}

TEST(SpotSavings, UseThePriceThatWasInForceThen) {
  model::PriceBook prices = testing::two_prices();
  const base::Instant change((testing::kOctober + kSpotHour) * 1'000'000);
  prices.entries[1].end = change;
  prices.entries[0].price.capacity = model::CapacityClass::kSpot;
  model::PriceEntry later = prices.entries[1];
  later.id = 3;
  later.begin = change;
  later.end = {};
  later.price.per_hour = base::MicroUsd(8'000'000);
  prices.entries.push_back(later);
  const SpotUse use = spot_total({spot_line("vision", 0, 2)}, prices);
  EXPECT_EQ(use.paid.rounded(), base::MicroUsd(8'000'000));
  EXPECT_EQ(use.on_demand.rounded(), base::MicroUsd(14'000'000)) << "an hour at 6, one at 8";
}

TEST(SpotSavings, AreOfBilledUseOfSpotGpusAlone) {
  model::LedgerLine on_demand = spot_line("vision", 0, 1);
  on_demand.capacity = model::CapacityClass::kOnDemand;
  model::LedgerLine without_gpu = spot_line("vision", 0, 1);
  without_gpu.gpu_uuid.clear();
  model::LedgerLine failed = spot_line("vision", 0, 1);
  failed.not_billed = model::NotBilled::kHardware;
  EXPECT_EQ(spot_total({on_demand, without_gpu, failed}), SpotUse());
  model::LedgerLine reclaimed = spot_line("vision", 0, 3);
  reclaimed.not_billed = model::NotBilled::kReclaimed;
  const SpotUse use = spot_total({reclaimed});
  EXPECT_TRUE(use.reclaimed == __int128{21'000} * kSpotHour);
  EXPECT_TRUE(use.time == 0);
}

TEST(SpotSavings, LeaveOutWhatHasNoPriceToCompareWith) {
  model::PriceBook prices = testing::two_prices();
  for (model::PriceEntry& entry : prices.entries) {
    entry.price.capacity = model::CapacityClass::kSpot;
  }
  const SpotUse use = spot_total({spot_line("vision", 0, 1)}, prices);
  EXPECT_TRUE(use.unpriced == use.time);
  EXPECT_EQ(use.paid, ExactCost());
  EXPECT_EQ(use.saved(), ExactCost());
}

TEST(SpotSavings, CountOnlyWhatLiesInTheWindow) {
  EXPECT_EQ(spot_total({spot_line("vision", -1, 1)}), spot_total({spot_line("vision", 0, 1)}));
  EXPECT_EQ(spot_total({spot_line("vision", 99, 200)}).on_demand.rounded(),
            base::MicroUsd(6'000'000));
}

TEST(SpotSavings, OfRandomLinesAddUpAndNeverPassTheListPrice) {
  base::Prng random(38);
  const model::PriceBook prices = testing::two_prices();
  for (int round = 0; round < 200; ++round) {
    SpotSavings savings(kSpotWindow, prices);
    for (int i = 0; i < 20; ++i) {
      const int from = static_cast<int>(random.below(90));
      model::LedgerLine line = spot_line(random.chance(1, 2) ? "a" : "b", from,
                                         from + 1 + static_cast<int>(random.below(9)));
      line.share = base::GpuShare(static_cast<std::int64_t>(1 + random.below(7000)));
      line.discount = static_cast<std::uint32_t>(random.below(10'001));
      line.gpu_type = random.chance(1, 2) ? "A100-80GB" : "T4-16GB";
      savings.add(line);
    }
    SpotUse sum;
    for (const SpotUse& row : savings.rows()) sum += row;
    const SpotUse total = savings.total();
    EXPECT_EQ(sum, total);
    EXPECT_GE(total.paid, ExactCost());
    EXPECT_LE(total.saved(), total.on_demand);
    const ExactCost list(total.time * 6'000'000 * 10'000 * 1024);
    EXPECT_LE(total.on_demand, list);
  }
}

}  // namespace
}  // namespace gpu_platform::accounting
