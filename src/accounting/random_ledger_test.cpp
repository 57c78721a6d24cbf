#include <gtest/gtest.h>

#include "accounting/monthly.h"
#include "accounting/testing/random_ledger.h"
#include "base/testing/rounds.h"

namespace gpu_platform::accounting {
namespace {

using testing::History;

constexpr std::uint64_t kHistories = 10'000;

bool wants_all(const model::LedgerLine&) {
  return true;
}

UsageFigures without_count(UsageFigures figures) {
  figures.lines = 0;
  return figures;
}

// All of the history, and what is before and after it.
Span around(const History& history) {
  return {history.begin - 1000, history.end + 1000};
}

// The longest that the history has some of.
UsageStep step_for(const History& history) {
  constexpr model::Millis kOneDay = 24 * 3'600'000LL;
  const model::Millis length = history.end - history.begin;
  if (length < kOneDay) return UsageStep::kHour;
  return length < 10 * kOneDay ? UsageStep::kDay : UsageStep::kMonth;
}

UsageSum summed(const UsageQuery& query, const std::vector<model::LedgerLine>& lines,
                const model::PriceBook& prices) {
  UsageSum sum(query, prices);
  for (const model::LedgerLine& line : lines) sum.add(line);
  return sum;
}

// Calls test(history, its lines, its prices, random) for each of many histories.
template <class Test>
void for_each_history(Test test) {
  for (std::uint64_t seed = 0; seed < base::rounds(kHistories); ++seed) {
    SCOPED_TRACE(seed);
    base::Prng random(seed);
    const History history = testing::draw_history(random);
    test(history, testing::lines_of(history), testing::book_of(history), random);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(RandomLedger, BooksBalanceExactly) {
  for_each_history([](const History& history, const std::vector<model::LedgerLine>& lines,
                      const model::PriceBook& prices, base::Prng&) {
    Balance balance(around(history), prices);
    for (const model::LedgerLine& line : lines) balance.add(line);
    const BalanceReport report = balance.report();
    EXPECT_TRUE(report.balances()) << report.differences.named.front();
    EXPECT_TRUE(report.absences.empty());
    __int128 wall = 0;
    for (const testing::HistoryGpu& gpu : history.gpus) {
      wall += static_cast<__int128>(7000) * (history.end - gpu.seen);
    }
    EXPECT_TRUE(report.wall == wall);
  });
}

TEST(RandomLedger, FiguresAreThoseOfTheHistory) {
  for_each_history([](const History& history, const std::vector<model::LedgerLine>& lines,
                      const model::PriceBook& prices, base::Prng& random) {
    const Span all = around(history);
    const model::Millis cut = testing::drawn_time(random, all.from + 1, all.to - 1);
    UsageFigures both;
    for (const Span span : {Span{all.from, cut}, Span{cut, all.to}}) {
      const UsageQuery query{.from = span.from, .to = span.to, .with_rest = true};
      const UsageFigures figures = without_count(summed(query, lines, prices).total());
      EXPECT_TRUE(figures == testing::plain_figures(history, span, wants_all, true));
      both += figures;
    }
    EXPECT_TRUE(both == testing::plain_figures(history, all, wants_all, true));
  });
}

TEST(RandomLedger, GroupsAreThoseOfTheHistory) {
  for_each_history([](const History& history, const std::vector<model::LedgerLine>& lines,
                      const model::PriceBook& prices, base::Prng& random) {
    const Span all = around(history);
    UsageQuery query{.from = all.from, .to = all.to};
    query.by = {{UsageField::kTeam, {}}, {UsageField::kUser, {}}};
    if (random.chance(3, 4)) query.step = step_for(history);
    const std::vector<UsageGroup> groups = summed(query, lines, prices).groups();
    UsageFigures total;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const UsageGroup& group = groups[i];
      const bool has_next = i + 1 < groups.size() && groups[i + 1].keys == group.keys;
      const Span span = {group.step, has_next ? groups[i + 1].step : all.to};
      const auto is_of_group = [&](const model::LedgerLine& line) {
        return line.team == group.keys[0] && line.user == group.keys[1];
      };
      // Between this group and the next of the same keys, the history has nothing more.
      EXPECT_TRUE(without_count(group.figures) ==
                  testing::plain_figures(history, span, is_of_group, false));
      total += group.figures;
    }
    EXPECT_TRUE(without_count(total) == testing::plain_figures(history, all, wants_all, false));
  });
}

TEST(RandomLedger, MonthsAddUp) {
  for_each_history([](const History& history, const std::vector<model::LedgerLine>& lines,
                      const model::PriceBook& prices, base::Prng&) {
    const base::Month month = base::month_of(base::Instant(history.end * 1'000'000));
    MonthlySum sum({.month = month, .currency = "USD"}, prices);
    for (const model::LedgerLine& line : lines) sum.add(line);
    const MonthlyReport report = sum.report();
    const Span span = {model::millis_of(base::begin_of(month)),
                       model::millis_of(base::end_of(month))};
    base::MicroUsd total;
    for (const TeamBill& bill : report.teams) {
      const auto is_of_team = [&](const model::LedgerLine& line) { return line.team == bill.team; };
      const UsageFigures figures = testing::plain_figures(history, span, is_of_team, false);
      EXPECT_EQ(bill.total, figures.bill().rounded());
      base::MicroUsd rows = bill.cpu + bill.corrections;
      for (const BillRow& row : bill.rows) {
        EXPECT_EQ(row.list - row.discount, row.cost);
        rows += row.cost;
      }
      EXPECT_EQ(rows, bill.total);
      total += bill.total;
    }
    EXPECT_EQ(report.total, total);
    EXPECT_EQ(report.trend.back().cost, total);
    EXPECT_EQ(report.trend.back().hours, report.gpus.hours());
    EXPECT_EQ(report.gpus.cost + report.cpu + report.corrections, total);
    EXPECT_TRUE(report.balance.balances());
    EXPECT_EQ(report.fleet_total.cost, report.balance.fleet.rounded());
  });
}

}  // namespace
}  // namespace gpu_platform::accounting
