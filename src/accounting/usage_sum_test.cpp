#include "accounting/usage_sum.h"

#include <gtest/gtest.h>

#include "accounting/testing/ledger_lines.h"

namespace gpu_platform::accounting {
namespace {

using testing::kHourMs;
using testing::kOctober;

constexpr model::Millis kDayMs = 24 * kHourMs;

UsageQuery october() {
  return {.from = kOctober, .to = kOctober + 31 * kDayMs};
}

std::vector<UsageGroup> groups_of(const UsageQuery& query,
                                  const std::vector<model::LedgerLine>& lines) {
  const model::PriceBook prices = testing::two_prices();
  UsageSum sum(query, prices);
  for (const model::LedgerLine& line : lines) sum.add(line);
  return sum.groups();
}

TEST(UsageQuery, ReadsWhatItWrites) {
  for (const char* text : {"user", "team", "project", "type", "node", "job", "label:run:1",
                           "capacity", "kind", "priority"}) {
    const std::optional<UsageBy> by = parse_usage_by(text);
    ASSERT_TRUE(by.has_value()) << text;
    EXPECT_EQ(to_string(*by), text);
  }
  for (const char* text : {"", "label", "label:", "Team", "teams"}) {
    EXPECT_FALSE(parse_usage_by(text).has_value()) << text;
  }
  EXPECT_EQ(parse_usage_step("day"), UsageStep::kDay);
  EXPECT_FALSE(parse_usage_step("week").has_value());
}

TEST(UsageQuery, NamesTheFieldThatIsWrong) {
  EXPECT_TRUE(check(october()).has_value());
  UsageQuery query = october();
  query.to = query.from;
  EXPECT_EQ(check(query).error().field, "to");
  query = october();
  query.from = -1;
  EXPECT_EQ(check(query).error().field, "from");
  query = october();
  query.by = {{UsageField::kTeam, {}}, {UsageField::kTeam, {}}};
  EXPECT_EQ(check(query).error().field, "by");
  query.by = {{UsageField::kLabel, "a"}, {UsageField::kLabel, "b"}};
  EXPECT_TRUE(check(query).has_value());
}

TEST(UsageSum, BillsFromTheStartToTheEndAlone) {
  model::LedgerLine line = testing::used_line("vision", kOctober, kOctober + 4 * kHourMs);
  line.started += kHourMs;
  line.ended -= kHourMs;
  line.discount = 1'000;
  const UsageFigures figures = groups_of(october(), {line}).at(0).figures;
  EXPECT_TRUE(figures.starting.time == __int128{7000} * kHourMs);
  EXPECT_TRUE(figures.cleaning.time == __int128{7000} * kHourMs);
  EXPECT_TRUE(figures.billed().time == __int128{14'000} * kHourMs);
  EXPECT_EQ(figures.billed().list.rounded(), base::MicroUsd(8'000'000));
  EXPECT_EQ(figures.discount.rounded(), base::MicroUsd(800'000));
  EXPECT_EQ(figures.bill().rounded(), base::MicroUsd(7'200'000));
  EXPECT_EQ(figures.lines, 1U);
}

TEST(UsageSum, KeepsApartWhatIsNotBilled) {
  model::LedgerLine line = testing::used_line("vision", kOctober, kOctober + kHourMs);
  line.not_billed = model::NotBilled::kHardware;
  line.discount = 1'000;
  const UsageFigures figures = groups_of(october(), {line}).at(0).figures;
  EXPECT_EQ(figures.bill(), ExactCost());
  EXPECT_EQ(figures.discount, ExactCost());
  EXPECT_EQ(figures.used[static_cast<std::size_t>(model::NotBilled::kHardware)].list.rounded(),
            base::MicroUsd(4'000'000));
  EXPECT_EQ(figures.not_billed().list.rounded(), base::MicroUsd(4'000'000));
}

TEST(UsageSum, FlagsTimeWithoutAPrice) {
  model::LedgerLine line = testing::used_line("vision", kOctober, kOctober + kHourMs);
  line.price = 0;
  const UsageFigures figures = groups_of(october(), {line}).at(0).figures;
  EXPECT_EQ(figures.bill(), ExactCost());
  EXPECT_TRUE(figures.billed().unpriced == __int128{7000} * kHourMs);
}

TEST(UsageSum, CutsALineAtTheBoundsOfItsStepsAndOfTheQuery) {
  UsageQuery query = october();
  query.from += kDayMs / 2;
  query.step = UsageStep::kDay;
  const std::vector<UsageGroup> groups =
      groups_of(query, {testing::used_line("vision", kOctober - kDayMs, kOctober + 3 * kDayMs)});
  ASSERT_EQ(groups.size(), 3U);
  EXPECT_EQ(groups[0].step, query.from);
  EXPECT_EQ(groups[1].step, kOctober + kDayMs);
  EXPECT_EQ(groups[2].step, kOctober + 2 * kDayMs);
  EXPECT_EQ(groups[0].figures.bill().rounded(), base::MicroUsd(48'000'000));
  EXPECT_EQ(groups[1].figures.bill().rounded(), base::MicroUsd(96'000'000));
}

TEST(UsageSum, KnowsALeapDayAndANewYear) {
  constexpr model::Millis kNewYear = 1'830'297'600'000;  // 2028-01-01T00:00:00Z
  UsageQuery query{.from = kNewYear - 31 * kDayMs, .to = kNewYear + 91 * kDayMs};
  query.step = UsageStep::kMonth;
  const std::vector<UsageGroup> groups =
      groups_of(query, {testing::used_line("vision", query.from, query.to)});
  ASSERT_EQ(groups.size(), 4U);
  const std::array<int, 4> days = {31, 31, 29, 31};
  for (std::size_t i = 0; i < days.size(); ++i) {
    EXPECT_EQ(groups[i].figures.bill().rounded(), base::MicroUsd(96'000'000) * days[i]) << i;
  }
}

TEST(UsageSum, PutsJobsInTheOrderOfTheirNumbers) {
  UsageQuery query = october();
  query.by = {{UsageField::kJob, {}}};
  std::vector<model::LedgerLine> lines;
  for (const std::uint64_t job : {10, 9, 100, 9}) {
    lines.push_back(testing::used_line("vision", kOctober, kOctober + 1));
    lines.back().attempt.job = model::JobId(job);
  }
  const std::vector<UsageGroup> groups = groups_of(query, lines);
  ASSERT_EQ(groups.size(), 3U);
  EXPECT_EQ(groups[0].keys, std::vector<std::string>{"9"});
  EXPECT_EQ(groups[0].figures.lines, 2U);
  EXPECT_EQ(groups[0].job_name, "train");
  EXPECT_EQ(groups[2].keys, std::vector<std::string>{"100"});
}

TEST(UsageSum, GroupsByALabelAndByOtherFields) {
  UsageQuery query = october();
  query.by = {{UsageField::kLabel, "run"}, {UsageField::kCapacity, {}}, {UsageField::kNode, {}}};
  model::LedgerLine line = testing::used_line("vision", kOctober, kOctober + 1);
  model::LedgerLine labelled = line;
  labelled.labels = {{"other", "x"}, {"run", "a"}};
  labelled.capacity = model::CapacityClass::kSpot;
  const std::vector<UsageGroup> groups = groups_of(query, {labelled, line});
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].keys, (std::vector<std::string>{"", "on-demand", "dgx-1"}));
  EXPECT_EQ(groups[1].keys, (std::vector<std::string>{"a", "spot", "dgx-1"}));
}

TEST(UsageSum, CountsOnlyWhatIsWanted) {
  const std::vector<model::LedgerLine> lines = {
      testing::used_line("vision", kOctober, kOctober + kHourMs),
      testing::used_line("speech", kOctober, kOctober + kHourMs),
      testing::rest_line(model::RestKind::kIdle, kOctober, kOctober + kHourMs),
      testing::correction_line("vision", kOctober, -500)};
  UsageQuery query = october();
  query.with_rest = true;
  query.filter.teams = {"vision"};
  UsageFigures figures = groups_of(query, lines).at(0).figures;
  EXPECT_EQ(figures.bill().rounded(), base::MicroUsd(4'000'000 - 500));
  EXPECT_TRUE(figures.rest.empty());
  query.filter = {.types = {"A100-80GB"}};
  figures = groups_of(query, lines).at(0).figures;
  EXPECT_EQ(figures.corrections, ExactCost());
  EXPECT_EQ(figures.rest_of(model::RestKind::kIdle).list.rounded(), base::MicroUsd(4'000'000));
  query.filter = {.types = {"A100"}};
  EXPECT_EQ(groups_of(query, lines).at(0).figures, figures) << "the family of the type";
  query.filter = {.types = {"H100-80GB"}};
  EXPECT_TRUE(groups_of(query, lines).empty());
}

TEST(UsageSum, BillsJobsWithoutGpusByCoresAndMemory) {
  model::LedgerLine line = testing::used_line("vision", kOctober, kOctober + 2 * kHourMs);
  line.gpu_uuid.clear();
  line.gpu_type.clear();
  line.share = base::GpuShare();
  line.price = 0;
  line.cpus = 8;
  line.memory_mib = 2048;
  line.core_hour = base::MicroUsd(10'000);
  line.gib_hour = base::MicroUsd(1'000);
  line.discount = 5'000;
  const UsageFigures figures = groups_of(october(), {line}).at(0).figures;
  EXPECT_TRUE(figures.cpu.core_ms == 16 * kHourMs);
  EXPECT_EQ(figures.cpu.list.rounded(), base::MicroUsd(164'000));
  EXPECT_EQ(figures.bill().rounded(), base::MicroUsd(82'000));
  EXPECT_TRUE(figures.all().time == 0);
}

TEST(UsageSum, SaysThatItLeftGroupsOut) {
  UsageQuery query = october();
  query.by = {{UsageField::kTeam, {}}};
  query.max_groups = 1;
  const model::PriceBook prices = testing::two_prices();
  UsageSum sum(query, prices);
  sum.add(testing::used_line("vision", kOctober, kOctober + 1));
  sum.add(testing::used_line("vision", kOctober + 1, kOctober + 2));
  EXPECT_TRUE(sum.is_complete());
  sum.add(testing::used_line("speech", kOctober, kOctober + 1));
  EXPECT_FALSE(sum.is_complete());
  EXPECT_EQ(sum.groups().size(), 1U);
}

TEST(Numbering, GivesNumbersInTheOrderOfArrival) {
  Numbering numbering;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    ASSERT_FALSE(numbering.has(std::to_string(i)));
    ASSERT_EQ(numbering.number_of(std::to_string(i)), i);
  }
  EXPECT_EQ(numbering.number_of("500"), 500U);
  EXPECT_EQ(numbering.text_of(999), "999");
  EXPECT_EQ(numbering.size(), 1000U);
}

}  // namespace
}  // namespace gpu_platform::accounting
