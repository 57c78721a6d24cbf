#include "accounting/advice.h"

#include <gtest/gtest.h>

#include "accounting/testing/ledger_lines.h"
#include "base/prng.h"

namespace gpu_platform::accounting {
namespace {

constexpr int kAdviceHours = 672;  // four weeks
constexpr Span kFourWeeks = {testing::kOctober, testing::kOctober + kAdviceHours* testing::kHourMs};

model::LedgerLine advice_line(int from_hour, int to_hour, std::uint64_t job = 1) {
  model::LedgerLine line =
      testing::used_line("vision", testing::kOctober + from_hour * testing::kHourMs,
                         testing::kOctober + to_hour * testing::kHourMs);
  line.attempt = {model::JobId(job), 1};
  return line;
}

TEST(FamilyOf, IsTheNameWithoutTheDigitsAtItsEnd) {
  EXPECT_EQ(family_of("train-17"), "train");
  EXPECT_EQ(family_of("train_2026-10-01"), "train");
  EXPECT_EQ(family_of("resnet50"), "resnet");
  EXPECT_EQ(family_of("gpt2-small"), "gpt2-small");
  EXPECT_EQ(family_of("train-"), "train-");
  EXPECT_EQ(family_of("2026-10"), "2026-10");
  EXPECT_EQ(family_of(""), "");
}

// ---- families

TEST(FamilySum, PutsAttemptsOfOneFamilyTogether) {
  std::vector<model::LedgerLine> lines = {advice_line(0, 1, 1), advice_line(0, 1, 1),
                                          advice_line(1, 2, 2), advice_line(0, 10, 3),
                                          advice_line(0, 1, 4)};
  lines[0].job_name = lines[1].job_name = "train-1";
  lines[2].job_name = "train-2";
  lines[3].job_name = "tune";
  lines[4].job_name = "train-3";
  lines[4].not_billed = model::NotBilled::kHardware;
  const model::PriceBook prices = testing::two_prices();
  FamilySum sum(kFourWeeks, prices);
  for (const model::LedgerLine& line : lines) sum.add(line);
  EXPECT_EQ(sum.size(), 2U);
  const std::vector<JobFamily> families = sum.dearest(10);
  ASSERT_EQ(families.size(), 2U);
  EXPECT_EQ(families[0].name, "tune");
  EXPECT_EQ(families[0].bill.rounded(), base::MicroUsd(40'000'000));
  EXPECT_EQ(families[1].name, "train");
  EXPECT_EQ(families[1].attempts, 2U) << "the first has two GPUs, the last is not billed";
  EXPECT_EQ(families[1].bill.rounded(), base::MicroUsd(12'000'000));
  EXPECT_FALSE(families[1].has_parts);
  EXPECT_EQ(sum.dearest(1).size(), 1U);
}

TEST(FamilySum, KeepsTheLatestAttempts) {
  const model::PriceBook prices = testing::two_prices();
  FamilySum sum(kFourWeeks, prices);
  for (std::uint64_t job = 1; job <= 30; ++job) sum.add(advice_line(0, 1, job));
  const JobFamily family = sum.dearest(1).at(0);
  EXPECT_EQ(family.attempts, 30U);
  ASSERT_EQ(family.latest.size(), kMaxFamilyLooks);
  EXPECT_EQ(family.latest.front().job, model::JobId(11));
  EXPECT_EQ(family.latest.back().job, model::JobId(30));
}

// ---- types

constexpr base::Bytes gib(std::int64_t count) {
  return base::Bytes(base::kGiB.value() * count);
}

std::vector<GpuOffer> four_offers() {
  return {{"A100-80GB", gib(80), 500, base::MicroUsd(4'000'000)},
          {"H100-80GB", gib(80), 1000, base::MicroUsd(5'500'000)},
          {"L40S-48GB", gib(48), 400, base::MicroUsd(2'200'000)},
          {"T4-16GB", gib(16), 100, base::MicroUsd(526'000)}};
}

JobFamily family_on_h100() {
  JobFamily family;
  family.gpu_type = "H100-80GB";
  family.bill = ExactCost(base::MicroUsd(100'000'000));
  return family;
}

MeasuredUse measured(std::optional<base::Bytes> peak, std::optional<double> utilization) {
  MeasuredUse use;
  use.add({utilization ? 1.0 : 0.0, utilization.value_or(0), peak});
  return use;
}

std::string advised_type(const MeasuredUse& use) {
  const TypeAdvice advice = advise_type(family_on_h100(), use, four_offers());
  return advice.better ? advice.better->gpu_type : "";
}

TEST(AdviseType, IsTheCheapestThatHasTheMemoryAndDoesEnough) {
  EXPECT_EQ(advised_type(measured(gib(20), 35)), "L40S-48GB");
  EXPECT_EQ(advised_type(measured(gib(20), 45)), "A100-80GB") << "an L40S does 40 % of an H100";
  EXPECT_EQ(advised_type(measured(gib(46), 35)), "A100-80GB") << "46 GiB and a tenth are too much";
  EXPECT_EQ(advised_type(measured(gib(20), 60)), "") << "none does enough";
  EXPECT_EQ(advised_type(measured(gib(10), 5)), "T4-16GB");
}

TEST(AdviseType, SavesAPartOfTheBill) {
  const TypeAdvice advice = advise_type(family_on_h100(), measured(gib(20), 35), four_offers());
  EXPECT_EQ(advice.saved.rounded(), base::MicroUsd(60'000'000)) << "2.20 instead of 5.50";
  EXPECT_EQ(advice.saved_percent, 60U);
  EXPECT_TRUE(advice.unknown.empty());
}

TEST(AdviseType, IsNoneThatSavesLessThanFivePercent) {
  std::vector<GpuOffer> offers = {{"A100-80GB", gib(80), 1000, base::MicroUsd(5'225'000)},
                                  {"H100-80GB", gib(80), 1000, base::MicroUsd(5'500'000)}};
  EXPECT_TRUE(advise_type(family_on_h100(), measured(gib(20), 90), offers).better);
  offers[0].per_hour = base::MicroUsd(5'225'001);
  EXPECT_FALSE(advise_type(family_on_h100(), measured(gib(20), 90), offers).better);
}

TEST(AdviseType, SaysWhatIsNotKnown) {
  using Words = std::vector<std::string>;
  const TypeAdvice without_use = advise_type(family_on_h100(), {}, four_offers());
  EXPECT_FALSE(without_use.better);
  EXPECT_EQ(without_use.unknown, (Words{"peak memory", "utilization"}));
  const TypeAdvice without_utilization =
      advise_type(family_on_h100(), measured(gib(20), std::nullopt), four_offers());
  EXPECT_FALSE(without_utilization.better) << "none does as much as an H100";
  EXPECT_EQ(without_utilization.unknown, Words{"utilization"});
  std::vector<GpuOffer> without_price = four_offers();
  without_price[1].per_hour.reset();
  EXPECT_EQ(advise_type(family_on_h100(), measured(gib(20), 35), without_price).unknown,
            Words{"price"});
  EXPECT_EQ(advise_type(family_on_h100(), measured(gib(20), 35), {}).unknown, Words{"type of GPU"});
  JobFamily of_parts = family_on_h100();
  of_parts.has_parts = true;
  EXPECT_EQ(advise_type(of_parts, measured(gib(20), 35), four_offers()).unknown,
            Words{"parts of GPUs"});
}

TEST(AdviseType, OfRandomOffersFitsAndSaves) {
  base::Prng random(38);
  for (int round = 0; round < 500; ++round) {
    std::vector<GpuOffer> offers;
    for (const char* type : {"A", "B", "H100-80GB"}) {
      offers.push_back({type, gib(static_cast<std::int64_t>(8 + random.below(80))),
                        static_cast<std::uint32_t>(1 + random.below(2000)),
                        base::MicroUsd(static_cast<std::int64_t>(random.below(10'000'000)))});
    }
    const base::Bytes peak = gib(static_cast<std::int64_t>(random.below(90)));
    const TypeAdvice advice = advise_type(
        family_on_h100(), measured(peak, static_cast<double>(random.below(101))), offers);
    if (!advice.better) continue;
    EXPECT_GE(advice.better->memory, peak);
    EXPECT_GE(advice.saved_percent, kLeastSavedPercent);
    EXPECT_LE(advice.saved, family_on_h100().bill);
  }
}

TEST(MeasuredUse, HasTheHighestPeakAndTheMeanUtilization) {
  MeasuredUse use;
  use.add({0.5, 20, gib(10)});
  use.add({1, 40, gib(12)});
  use.add({0, 0, gib(11)});
  use.add({0, 0, std::nullopt});
  EXPECT_EQ(use.attempts(), 3U);
  EXPECT_EQ(use.peak_memory(), gib(12));
  EXPECT_EQ(use.utilization_percent(), 30.0);
}

// ---- idle GPUs

TEST(HeldSum, PutsTheLinesOfAnAttemptTogether) {
  const model::PriceBook prices = testing::two_prices();
  HeldSum sum(kFourWeeks, prices);
  sum.add(advice_line(0, 1, 1));
  sum.add(advice_line(0, 10, 2));
  sum.add(advice_line(10, 12, 2));
  model::LedgerLine free = advice_line(0, 2, 3);
  free.not_billed = model::NotBilled::kPlatform;
  sum.add(free);
  const std::vector<HeldAttempt> held = sum.largest_first();
  ASSERT_EQ(held.size(), 3U);
  EXPECT_EQ(held[0].attempt.job, model::JobId(2));
  EXPECT_EQ(held[0].used, (Span{testing::kOctober, testing::kOctober + 12 * testing::kHourMs}));
  EXPECT_EQ(held[0].bill.rounded(), base::MicroUsd(48'000'000));
  EXPECT_EQ(held[1].attempt.job, model::JobId(3));
  EXPECT_EQ(held[1].bill, ExactCost());
  EXPECT_EQ(sum.team_name(held[0].team), "vision");
}

TEST(ActivityOf, FollowsTheRuleOfTheSite) {
  HeldAttempt held;
  held.used = {testing::kOctober, testing::kOctober + testing::kHourMs};
  const WasteRule rule;
  EXPECT_EQ(activity_of(held, std::nullopt, rule), Activity::kNotMeasured);
  EXPECT_EQ(activity_of(held, AttemptUse{0.49, 0, {}}, rule), Activity::kNotMeasured);
  EXPECT_EQ(activity_of(held, AttemptUse{0.5, 4.9, {}}, rule), Activity::kIdle);
  EXPECT_EQ(activity_of(held, AttemptUse{0.5, 5, {}}, rule), Activity::kUsed);
  held.used.to = held.used.from + testing::kHourMs / 2 - 1;
  EXPECT_EQ(activity_of(held, AttemptUse{1, 0, {}}, rule), Activity::kUsed) << "it is too short";
}

// ---- reserved capacity

// One GPU all the time, a second one half of it.
ReservedSum one_and_a_half() {
  ReservedSum sum(kFourWeeks);
  sum.add(advice_line(-5, kAdviceHours + 5, 1));
  sum.add(advice_line(0, kAdviceHours / 2, 2));
  return sum;
}

ReservedAdvice reserved_at(std::int64_t reserved_micros) {
  const auto advice = one_and_a_half().advice(
      {{"A100-80GB", {base::MicroUsd(4'000'000), base::MicroUsd(reserved_micros)}}});
  EXPECT_EQ(advice.size(), 1U);
  return advice.at(0);
}

TEST(ReservedSum, AdvisesGpusThatAreInUseBeyondBreakEven) {
  const ReservedAdvice one = reserved_at(2'400'000);  // break-even at 60 %
  EXPECT_EQ(one.gpus, 1U);
  EXPECT_EQ(one.busy, kAdviceHours * testing::kHourMs);
  EXPECT_EQ(one.saved.rounded(), base::MicroUsd(1'075'200'000)) << "672 × 1.60";
  EXPECT_TRUE(one.time == __int128{7000} * testing::kHourMs * (kAdviceHours + kAdviceHours / 2));
  const ReservedAdvice two = reserved_at(1'600'000);  // at 40 %
  EXPECT_EQ(two.gpus, 2U);
  EXPECT_EQ(two.busy, kAdviceHours / 2 * testing::kHourMs);
  EXPECT_EQ(two.saved.rounded(), base::MicroUsd(1'881'600'000))
      << "672 × 2.40 + 336 × 4 − 672 × 1.60";
  const ReservedAdvice none = reserved_at(4'000'000);
  EXPECT_EQ(none.gpus, 0U);
  EXPECT_EQ(none.saved, ExactCost());
}

TEST(ReservedSum, AddsUpPartsOfGpus) {
  ReservedSum sum(kFourWeeks);
  for (const std::uint64_t job : {1, 2}) {
    model::LedgerLine line = advice_line(0, kAdviceHours, job);
    line.share = base::GpuShare(3500);
    sum.add(line);
  }
  const auto advice =
      sum.advice({{"A100-80GB", {base::MicroUsd(4'000'000), base::MicroUsd(3'000'000)}}});
  EXPECT_EQ(advice.at(0).gpus, 1U);
}

TEST(ReservedSum, AdvisesNothingWithoutAPriceAndOfOtherCapacity) {
  ReservedSum sum = one_and_a_half();
  model::LedgerLine spot = advice_line(0, 1);
  spot.capacity = model::CapacityClass::kSpot;
  spot.gpu_type = "T4-16GB";
  sum.add(spot);
  EXPECT_EQ(sum.gpu_types(), std::vector<std::string>{"A100-80GB"});
  const auto advice = sum.advice({});
  ASSERT_EQ(advice.size(), 1U);
  EXPECT_FALSE(advice[0].offer);
  EXPECT_EQ(advice[0].gpus, 0U);
}

}  // namespace
}  // namespace gpu_platform::accounting
