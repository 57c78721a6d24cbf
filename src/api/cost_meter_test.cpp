#include "api/cost_meter.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/units.h"

namespace gpu_platform::api {
namespace {

constexpr model::Millis kMeterHour = 3'600'000;
constexpr auto kType = "H100-80GB";

class CostMeterTest : public testing::Test {
 protected:
  CostMeterTest() {
    model::Billing billing;
    billing.prices = {{.gpu_type = kType, .per_hour = base::MicroUsd(2'000'000)}};
    prices_.follow(billing, base::Instant(1));
  }

  static model::LedgerLine line(const std::string& team, model::Millis from, model::Millis to) {
    model::LedgerLine line;
    line.kind = model::LedgerKind::kHeld;
    line.gpu_uuid = "GPU-1";
    line.gpu_type = kType;
    line.share = base::kWholeGpu;
    line.price = 1;
    line.team = team;
    line.from = line.started = from;
    line.ended = line.to = to;
    return line;
  }

  CostSums count(model::Millis now) {
    const auto sums = meter_.count(
        now, prices_,
        [&](const store::LedgerQuery& query, const store::Ledger::Visit& visit) -> base::Status {
          for (const model::LedgerLine& line : lines_) {
            if (accounting::is_in(line, {query.from, query.to})) TRY(visit(line));
          }
          return problem_;
        });
    return sums ? *sums : CostSums();
  }
  static base::MicroUsd bill(const CostSums& sums, const std::string& team) {
    const auto found = sums.find({team, kType, model::CapacityClass::kOnDemand});
    return found == sums.end() ? base::MicroUsd() : found->second.bill().rounded();
  }

  model::PriceBook prices_;
  std::vector<model::LedgerLine> lines_;
  base::Status problem_;
  CostMeter meter_{10 * kMeterHour};
};

TEST_F(CostMeterTest, CountsEachMomentOnceFromItsBeginOn) {
  lines_ = {line("vision", 9 * kMeterHour, 12 * kMeterHour)};
  EXPECT_EQ(bill(count(11 * kMeterHour), "vision"), base::MicroUsd(2'000'000))
      << "not the hour before";
  lines_ = {line("vision", 9 * kMeterHour, 13 * kMeterHour),
            line("search", 12 * kMeterHour, 13 * kMeterHour)};
  const CostSums sums = count(13 * kMeterHour);
  EXPECT_EQ(bill(sums, "vision"), base::MicroUsd(6'000'000));
  EXPECT_EQ(bill(sums, "search"), base::MicroUsd(2'000'000));
}

TEST_F(CostMeterTest, NeverFalls) {
  lines_ = {line("vision", 10 * kMeterHour, 12 * kMeterHour)};
  EXPECT_EQ(bill(count(12 * kMeterHour), "vision"), base::MicroUsd(4'000'000));
  EXPECT_EQ(bill(count(11 * kMeterHour), "vision"), base::MicroUsd(4'000'000))
      << "the clock went back";
  lines_.front().not_billed = model::NotBilled::kHardware;
  lines_.front().ended = lines_.front().to = 13 * kMeterHour;
  const CostSums sums = count(13 * kMeterHour);
  EXPECT_EQ(bill(sums, "vision"), base::MicroUsd(4'000'000));
  EXPECT_FALSE(sums.begin()->second.not_billed() == accounting::GpuTime());
}

TEST_F(CostMeterTest, AddsNothingIfTheLedgerCannotBeRead) {
  lines_ = {line("vision", 10 * kMeterHour, 12 * kMeterHour)};
  problem_ = base::fail(base::ErrorCode::kUnavailable, "the disk is away");
  EXPECT_TRUE(count(11 * kMeterHour).empty());
  problem_ = {};
  EXPECT_EQ(bill(count(12 * kMeterHour), "vision"), base::MicroUsd(4'000'000));
}

TEST_F(CostMeterTest, PutsTheTeamsThatAppearLateTogether) {
  for (std::size_t i = 0; i < kMaxCostTeams + 2; ++i) {
    lines_.push_back(line("team-" + std::to_string(i), 10 * kMeterHour, 11 * kMeterHour));
  }
  const CostSums sums = count(11 * kMeterHour);
  EXPECT_EQ(sums.size(), kMaxCostTeams + 1);
  EXPECT_EQ(bill(sums, "team-0"), base::MicroUsd(2'000'000));
  EXPECT_EQ(bill(sums, "(other)"), base::MicroUsd(4'000'000));
}

TEST_F(CostMeterTest, LeavesCorrectionsOut) {
  model::LedgerLine correction = line("vision", 11 * kMeterHour, 11 * kMeterHour);
  correction.kind = model::LedgerKind::kCorrection;
  correction.amount = base::MicroUsd(-1'000'000);
  lines_ = {correction};
  EXPECT_TRUE(count(12 * kMeterHour).empty());
}

}  // namespace
}  // namespace gpu_platform::api
