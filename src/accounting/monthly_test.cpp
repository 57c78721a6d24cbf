#include "accounting/monthly.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "accounting/amount_text.h"
#include "accounting/monthly_documents.h"
#include "accounting/testing/ledger_lines.h"

namespace gpu_platform::accounting {
namespace {

using ::testing::HasSubstr;
using testing::kHourMs;
using testing::kOctober;
using ::testing::Not;

constexpr base::Month kMonth{2026, 10};

MonthlyReport report_of(const std::vector<model::LedgerLine>& lines,
                        std::vector<std::string> teams = {}) {
  const model::PriceBook prices = testing::two_prices();
  MonthlySum sum({.month = kMonth, .teams = std::move(teams), .currency = "USD"}, prices);
  for (const model::LedgerLine& line : lines) sum.add(line);
  return sum.report();
}

std::vector<model::LedgerLine> some_lines() {
  model::LedgerLine h100 = testing::used_line("speech", kOctober, kOctober + kHourMs / 2);
  h100.gpu_uuid = "GPU-2";
  h100.gpu_type = "H100-80GB";
  h100.price = 2;
  model::LedgerLine unpriced = testing::used_line("vision", kOctober, kOctober + kHourMs);
  unpriced.gpu_uuid = "GPU-3";
  unpriced.gpu_type = "X1";
  unpriced.price = 0;
  return {
      testing::used_line("vision", kOctober - kHourMs, kOctober + 2 * kHourMs),
      testing::rest_line(model::RestKind::kIdle, kOctober + 2 * kHourMs, kOctober + 3 * kHourMs),
      h100, unpriced, testing::correction_line("speech", kOctober, -250'000)};
}

TEST(MonthlyReport, HasTheShapeThatScriptsKnow) {
  EXPECT_EQ(json_of(report_of(some_lines())), R"({
  "month": "2026-10",
  "teams": {
    "speech": {
      "total_cost": 2.75,
      "by_gpu_type": {
        "H100-80GB": {"hours": 0.5, "cost": 3}
      },
      "corrections": -0.25
    },
    "vision": {
      "total_cost": 8,
      "by_gpu_type": {
        "A100-80GB": {"hours": 2, "cost": 8},
        "X1": {"hours": 1, "cost": null, "unpriced_hours": 1}
      }
    }
  },
  "total": 10.75
}
)");
}

TEST(MonthlyReport, HasAnEmptyMonth) {
  EXPECT_EQ(json_of(report_of({})),
            "{\n  \"month\": \"2026-10\",\n  \"teams\": {},\n  \"total\": 0\n}\n");
}

TEST(MonthlyReport, WritesARowForEachTeamAndType) {
  EXPECT_EQ(csv_of(report_of(some_lines())),
            "month,team,gpu_type,item,gpu_hours,unpriced_gpu_hours,not_billed_gpu_hours,"
            "list_cost,discount,cost,currency\r\n"
            "2026-10,speech,H100-80GB,gpu,0.500000,0.000000,0.000000,3.000000,0.000000,3.000000,"
            "USD\r\n"
            "2026-10,speech,,correction,,,,,,-0.250000,USD\r\n"
            "2026-10,vision,A100-80GB,gpu,2.000000,0.000000,0.000000,8.000000,0.000000,8.000000,"
            "USD\r\n"
            "2026-10,vision,X1,gpu,1.000000,1.000000,0.000000,,,,USD\r\n");
}

TEST(MonthlyReport, KeepsFormulasFromSpreadsheets) {
  EXPECT_EQ(csv_text("vision"), "vision");
  EXPECT_EQ(csv_text("=cmd()"), "\"'=cmd()\"");
  EXPECT_EQ(csv_text("+1"), "\"'+1\"");
  EXPECT_EQ(csv_text("-1"), "\"'-1\"");
  EXPECT_EQ(csv_text("@x"), "\"'@x\"");
  EXPECT_EQ(csv_text("\tx"), "\"'\tx\"");
  EXPECT_EQ(csv_text("\rx"), "\"'\rx\"");
  EXPECT_EQ(csv_text("a,\"b\""), "\"a,\"\"b\"\"\"");
  EXPECT_EQ(csv_text("a\nb"), "\"a\nb\"");
}

// Of a line that is read as text, such a mark turns what follows it, the amounts too.
TEST(MonthlyReport, KeepsMarksOfDirectionOutOfItsRows) {
  EXPECT_EQ(csv_text("a\xe2\x80\xae"
                     "b\xe2\x81\xa6"),
            "a\xef\xbf\xbd"
            "b\xef\xbf\xbd");
  EXPECT_EQ(csv_text("\xd7\x90"), "\xd7\x90") << "letters stay";
  EXPECT_EQ(csv_text("a\xff"), "a\xef\xbf\xbd") << "a file of one encoding";
  std::vector<model::LedgerLine> lines = some_lines();
  lines[0].team = "\xe2\x80\xaevision";
  EXPECT_THAT(csv_of(report_of(lines)), HasSubstr("\r\n2026-10,\xef\xbf\xbdvision,A100-80GB,gpu,"));
}

TEST(MonthlyReport, WritesNamesAsText) {
  const std::string override_mark = "\xe2\x80\xae";  // U+202E
  EXPECT_EQ(json_text("a\"\\\n"), "\"a\\\"\\\\\\u000a\"");
  EXPECT_EQ(json_text(override_mark + "\xff"), "\"\\u202e\xef\xbf\xbd\"");
  EXPECT_EQ(html_name("<b>&'\"" + override_mark),
            "<bdi>&lt;b&gt;&amp;&#39;&quot;\xef\xbf\xbd</bdi>");
  std::vector<model::LedgerLine> lines = some_lines();
  lines[0].team = "<script>alert(1)</script>";
  const std::string page = html_of(report_of(lines));
  EXPECT_THAT(page, HasSubstr("<bdi>&lt;script&gt;alert(1)&lt;/script&gt;</bdi>"));
  EXPECT_THAT(page, Not(HasSubstr("<script")));
}

TEST(MonthlyReport, HasAPageWithFleetTrendAndFlags) {
  const std::string page = html_of(report_of(some_lines()));
  EXPECT_THAT(page, HasSubstr("<strong>10.75 USD</strong>"));
  EXPECT_THAT(page, HasSubstr("no price"));
  EXPECT_THAT(page, HasSubstr("<svg viewBox"));
  EXPECT_THAT(page, HasSubstr("2025-11"));
  EXPECT_THAT(page, HasSubstr("The books of 3 GPUs balance"));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  EXPECT_EQ(page, html_of(report_of(some_lines())));
}

TEST(MonthlyReport, AddsTheFleetUpToItsCost) {
  const MonthlyReport report = report_of(some_lines());
  ASSERT_EQ(report.fleet.size(), 2U);
  EXPECT_EQ(report.fleet[0], (FleetRow{"billed", 3'500'000, base::MicroUsd(11'000'000)}));
  EXPECT_EQ(report.fleet[1], (FleetRow{"idle", 1'000'000, base::MicroUsd(4'000'000)}));
  EXPECT_EQ(report.fleet_total.cost, base::MicroUsd(15'000'000));
  ASSERT_EQ(report.idle.size(), 1U);
  EXPECT_EQ(report.idle[0].what, "A100-80GB");
}

// The lines have the names of their time, whatever became of the teams.
TEST(MonthlyReport, HasATeamUnderEachOfItsNames) {
  model::LedgerLine renamed =
      testing::used_line("sight", kOctober + 2 * kHourMs, kOctober + 3 * kHourMs);
  const MonthlyReport report =
      report_of({testing::used_line("vision", kOctober, kOctober + 2 * kHourMs), renamed});
  ASSERT_EQ(report.teams.size(), 2U);
  EXPECT_EQ(report.teams[0].team, "sight");
  EXPECT_EQ(report.teams[0].total, base::MicroUsd(4'000'000));
  EXPECT_EQ(report.teams[1].team, "vision");
  EXPECT_EQ(report.teams[1].total, base::MicroUsd(8'000'000));
}

TEST(MonthlyReport, OfATeamSaysNothingOfOthers) {
  const MonthlyReport report = report_of(some_lines(), {"vision"});
  ASSERT_EQ(report.teams.size(), 1U);
  EXPECT_EQ(report.total, base::MicroUsd(8'000'000));
  EXPECT_FALSE(report.has_fleet);
  EXPECT_TRUE(report.fleet.empty());
  EXPECT_EQ(report.balance.gpus, 0U);
  const std::string page = html_of(report);
  EXPECT_THAT(page, Not(HasSubstr("speech")));
  EXPECT_THAT(page, Not(HasSubstr("whole fleet")));
}

TEST(MonthlyReport, HasTheTrendOfTwelveMonths) {
  const MonthlyReport report = report_of(some_lines());
  ASSERT_EQ(report.trend.size(), kTrendMonths);
  EXPECT_EQ(report.trend.front().month, (base::Month{2025, 11}));
  EXPECT_EQ(report.trend[10].cost, base::MicroUsd(4'000'000));  // an hour of September
  EXPECT_EQ(report.trend.back().cost, report.total);
}

TEST(AmountText, NeverPassesThroughADouble) {
  EXPECT_EQ(six_decimals(12'500'000), "12.500000");
  EXPECT_EQ(six_decimals(-1), "-0.000001");
  EXPECT_EQ(shortest(12'500'000), "12.5");
  EXPECT_EQ(shortest(10'000'000), "10");
  EXPECT_EQ(shortest(0), "0");
  EXPECT_EQ(shortest(9'007'199'254'740'993), "9007199254.740993");
  EXPECT_EQ(six_decimals(INT64_MIN), "-9223372036854.775808");
  EXPECT_EQ(with_hundredths(1'234'567), "12,345.67");
  EXPECT_EQ(with_hundredths(-100'000'000), "-1,000,000.00");
  EXPECT_EQ(with_hundredths(99'999), "999.99");
}

TEST(AmountText, RoundsRowsToTheirTotal) {
  HundredthRounder cents;
  EXPECT_EQ(cents.next(3'333), 0);
  EXPECT_EQ(cents.next(3'333), 1);
  EXPECT_EQ(cents.next(3'334), 0);
  HourRounder hours;
  EXPECT_EQ(hours.next(kTimePerMicroHour / 2), 1);
  EXPECT_EQ(hours.next(kTimePerMicroHour / 2), 0);
}

}  // namespace
}  // namespace gpu_platform::accounting
