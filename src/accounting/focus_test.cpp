#include "accounting/focus.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/prng.h"

namespace gpu_platform::accounting {
namespace {

constexpr model::Millis kHour = 3'600'000;
constexpr base::MicroUsd kPrice{5'500'000};

model::Millis october(int day, model::Millis later = 0) {
  return model::millis_of(base::begin_of({2026, 10})) + (day - 1) * 24 * kHour + later;
}

FocusQuestion question(FocusVersion version = FocusVersion::k1_3) {
  return {.month = {2026, 10}, .version = version, .account = "site", .currency = "USD"};
}

FocusLine held(model::Millis from, model::Millis to) {
  FocusLine line{.job = "7", .per_hour = kPrice};
  line.line.kind = model::LedgerKind::kHeld;
  line.line.node = "dgx-1";
  line.line.gpu_uuid = "GPU-1";
  line.line.gpu_type = "H100-80GB";
  line.line.share = base::kWholeGpu;
  line.line.price = 1;
  line.line.from = line.line.started = from;
  line.line.ended = line.line.to = to;
  line.line.attempt.attempt = 1;
  line.line.user = "ada";
  line.line.team = "vision";
  line.line.job_name = "train";
  return line;
}

FocusLine rest(model::Millis from, model::Millis to) {
  FocusLine line = held(from, to);
  line.job.clear();
  line.line.kind = model::LedgerKind::kRest;
  line.line.attempt = {};
  line.line.user = line.line.team = line.line.job_name = {};
  return line;
}

std::vector<FocusRow> rows_of(const std::vector<FocusLine>& lines) {
  FocusSum sum(question());
  for (const FocusLine& line : lines) sum.add(line);
  return sum.rows();
}

// Cells without quotes: the tests look at such columns alone.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells(1);
  bool is_quoted = false;
  for (const char c : line) {
    if (c == '"') is_quoted = !is_quoted;
    if (c == ',' && !is_quoted) {
      cells.emplace_back();
    } else if (c != '"' && c != '\r') {
      cells.back() += c;
    }
  }
  return cells;
}

// The first row, by column.
std::map<std::string, std::string> first_row(const FocusQuestion& asked,
                                             const std::vector<FocusRow>& rows) {
  const std::string csv = focus_csv(asked, rows);
  const std::size_t end = csv.find('\n');
  const auto names = cells_of(csv.substr(0, end));
  const auto cells = cells_of(csv.substr(end + 1, csv.find('\n', end + 1) - end - 1));
  EXPECT_EQ(names.size(), cells.size());
  std::map<std::string, std::string> row;
  for (std::size_t i = 0; i < std::min(names.size(), cells.size()); ++i) row[names[i]] = cells[i];
  return row;
}

TEST(Focus, ADayOfAGpuIsOneChargeThatIsSplitByJobsAndTheSite) {
  FocusLine job = held(october(5), october(5, 6 * kHour));
  job.line.started += kHour;
  job.line.discount = 1000;
  const auto rows = rows_of({job, rest(october(5, 6 * kHour), october(6))});
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].share.part, FocusPart::kUsed);
  EXPECT_EQ(rows[0].list, base::MicroUsd(27'500'000));
  EXPECT_EQ(rows[0].billed, base::MicroUsd(24'750'000)) << "less ten percent";
  EXPECT_EQ(rows[0].nano_quantity, 5'000'000'000);
  EXPECT_EQ(rows[1].share.part, FocusPart::kStarting);
  EXPECT_TRUE(rows[1].is_of_site());
  EXPECT_EQ(rows[1].billed, kPrice);
  EXPECT_EQ(rows[2].share.part, FocusPart::kRest);
  EXPECT_EQ(rows[2].nano_ratio, 750'000'000);
}

TEST(Focus, TakesOnlyWhatLiesInTheMonth) {
  const auto rows = rows_of({held(october(1, -kHour), october(2)), held(october(32), october(33))});
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].origin.day, october(1));
  EXPECT_EQ(rows[0].nano_quantity, 24'000'000'000);
}

TEST(Focus, CutsDaysAtALeapDayAndAtNewYear) {
  const auto begin = [](base::Month month) { return model::millis_of(base::begin_of(month)); };
  FocusQuestion asked = question();
  asked.month = {2028, 2};
  FocusSum leap(asked);
  leap.add(held(begin({2028, 3}) - 25 * kHour, begin({2028, 3}) + kHour));
  const auto days = leap.rows();
  ASSERT_EQ(days.size(), 2U);
  EXPECT_EQ(days[0].nano_quantity, 1'000'000'000);
  EXPECT_EQ(days[1].nano_quantity, 24'000'000'000);
  const auto row = first_row(asked, {days[1]});
  EXPECT_EQ(row.at("ChargePeriodStart"), "2028-02-29T00:00:00Z");
  EXPECT_EQ(row.at("ChargePeriodEnd"), "2028-03-01T00:00:00Z");
  EXPECT_EQ(row.at("BillingPeriodEnd"), "2028-03-01T00:00:00Z");
  asked.month = {2027, 12};
  FocusSum last(asked);
  last.add(held(begin({2028, 1}) - kHour, begin({2028, 1}) + kHour));
  ASSERT_EQ(last.rows().size(), 1U);
  EXPECT_EQ(first_row(asked, last.rows()).at("BillingPeriodEnd"), "2028-01-01T00:00:00Z");
  EXPECT_EQ(last.rows()[0].nano_quantity, 1'000'000'000);
}

TEST(Focus, TimeThatIsNotBilledIsTheSites) {
  FocusLine lost = held(october(3), october(3, kHour));
  lost.line.not_billed = model::NotBilled::kHardware;
  const auto rows = rows_of({lost});
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_TRUE(rows[0].is_of_site());
  const auto row = first_row(question(), rows);
  EXPECT_EQ(row.at("x_NotBilledReason"), "hardware");
  EXPECT_EQ(row.at("AllocatedResourceId"), "site/not-billed");
  EXPECT_EQ(row.at("BilledCost"), "5.500000");
}

// Whatever the lines: the rows of a charge add up to it, to the last unit.
TEST(Focus, RowsOfAChargeAddUpToItInRandomLedgers) {
  base::Prng prng(38);
  for (int round = 0; round < 200; ++round) {
    FocusSum sum(question());
    ExactCost list;
    model::Millis at = october(1);
    while (at < october(6)) {
      const model::Millis to = at + 1 + static_cast<model::Millis>(prng.below(9 * kHour));
      FocusLine line = prng.below(2) == 0 ? held(at, to) : rest(at, to);
      line.job = line.job.empty() ? "" : std::to_string(prng.below(1000));
      line.line.share = base::GpuShare(1 + static_cast<std::int64_t>(prng.below(7000)));
      line.line.discount = static_cast<std::uint32_t>(prng.below(10'001));
      line.per_hour = base::MicroUsd(static_cast<std::int64_t>(prng.below(9'000'000)));
      line.line.price = static_cast<std::uint32_t>(round + 1);
      sum.add(line);
      list += gpu_cost(line.line.share, to - at, *line.per_hour);
      at = to;
    }
    std::map<std::string, std::pair<ExactCost, base::MicroUsd>> origins;
    std::map<std::string, std::int64_t> ratios;
    ExactCost all;
    for (const FocusRow& row : sum.rows()) {
      const std::string id =
          std::to_string(row.origin.day) + "/" + std::to_string(row.origin.unit_price.value());
      origins[id].first += row.list_exact;
      origins[id].second += row.list;
      ratios[id] += row.nano_ratio;
      all += row.list_exact;
    }
    EXPECT_EQ(all, list) << round;
    for (const auto& [id, sums] : origins) EXPECT_EQ(sums.first.rounded(), sums.second) << id;
    for (const auto& [id, ratio] : ratios) EXPECT_EQ(ratio, 1'000'000'000) << id;
  }
}

TEST(Focus, HasTheColumnsOfItsVersion) {
  const auto rows = rows_of({held(october(3), october(3, kHour))});
  const auto row_1_2 = first_row(question(FocusVersion::k1_2), rows);
  EXPECT_FALSE(row_1_2.contains("AllocatedResourceId"));
  EXPECT_EQ(row_1_2.at("ProviderName"), "gpu-platform");
  EXPECT_EQ(row_1_2.at("SubAccountId"), "vision");
  const auto row_1_3 = first_row(question(), rows);
  EXPECT_EQ(row_1_3.at("AllocatedResourceId"), "job/7");
  EXPECT_EQ(row_1_3.at("AllocatedMethodId"), "gpu-time-exact");
  EXPECT_EQ(row_1_3.at("SubAccountId"), "") << "rows of one charge have the same";
  EXPECT_TRUE(row_1_3.contains("ProviderName"));
  EXPECT_EQ(row_1_3.at("ChargePeriodStart"), "2026-10-03T00:00:00Z");
  EXPECT_EQ(row_1_3.at("BillingPeriodEnd"), "2026-11-01T00:00:00Z");
  const auto row_1_4 = first_row(question(FocusVersion::k1_4), rows);
  EXPECT_FALSE(row_1_4.contains("ProviderName"));
  EXPECT_TRUE(row_1_4.contains("ServiceProviderName"));
}

TEST(Focus, UseWithoutAPriceIsFlagged) {
  FocusLine line = held(october(3), october(3, kHour));
  line.per_hour = std::nullopt;
  const auto row = first_row(question(), rows_of({line}));
  EXPECT_EQ(row.at("x_Unpriced"), "true");
  EXPECT_EQ(row.at("SkuPriceId"), "");
  EXPECT_EQ(row.at("PricingQuantity"), "1.000000000");
}

TEST(Focus, ACorrectionIsAnAdjustmentWithoutAQuantity) {
  FocusLine line;
  line.line.kind = model::LedgerKind::kCorrection;
  line.line.from = october(9, kHour);
  line.line.amount = base::MicroUsd(-1'500'000);
  line.line.text = "=cmd()";
  line.line.team = "vision";
  const auto row = first_row(question(), rows_of({line}));
  EXPECT_EQ(row.at("ChargeClass"), "Correction");
  EXPECT_EQ(row.at("BilledCost"), "-1.500000");
  EXPECT_EQ(row.at("PricingQuantity"), "");
  EXPECT_EQ(row.at("x_Team"), "vision");
  EXPECT_EQ(row.at("ChargePeriodStart"), "2026-10-09T00:00:00Z");
}

TEST(Focus, FormulasInNamesAreTexts) {
  FocusLine line = held(october(3), october(3, kHour));
  line.line.user = "=cmd()";
  EXPECT_EQ(first_row(question(), rows_of({line})).at("x_User"), "'=cmd()");
}

TEST(Focus, JobsWithoutGpusHaveRowsOfCoresAndMemory) {
  FocusLine line = held(october(3), october(3, 2 * kHour));
  line.line.gpu_uuid.clear();
  line.line.share = {};
  line.per_hour = std::nullopt;
  line.line.cpus = 4;
  line.line.memory_mib = 2048;
  EXPECT_TRUE(rows_of({line}).empty()) << "they have no price";
  line.line.core_hour = base::MicroUsd(10'000);
  line.line.gib_hour = base::MicroUsd(1'000);
  const auto rows = rows_of({line});
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].list, base::MicroUsd(80'000));
  EXPECT_EQ(rows[0].nano_quantity, 8'000'000'000);
  EXPECT_EQ(rows[1].list, base::MicroUsd(4'000));
  EXPECT_EQ(rows[1].nano_quantity, 4'000'000'000);
}

TEST(Focus, ReadsItsVersions) {
  EXPECT_EQ(parse_focus_version("1.4"), FocusVersion::k1_4);
  EXPECT_EQ(to_string(FocusVersion::k1_2), "1.2");
  EXPECT_FALSE(parse_focus_version("1.1"));
}

}  // namespace
}  // namespace gpu_platform::accounting
