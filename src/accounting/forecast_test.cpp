#include "accounting/forecast.h"

#include <gtest/gtest.h>

#include "accounting/testing/ledger_lines.h"
#include "base/prng.h"

namespace gpu_platform::accounting {
namespace {

// A GPU at the price 1 of ledger_lines.h costs 96 a day. October 2026 begins with a Thursday.
constexpr model::Millis kOutlookDay = 24 * testing::kHourMs;

model::Millis october_at(int day, int hour = 0) {
  return testing::kOctober + day * kOutlookDay + hour * testing::kHourMs;
}

Forecast outlook_as_of(model::Millis now, const std::vector<model::LedgerLine>& lines) {
  const model::PriceBook prices = testing::two_prices();
  ForecastSum sum(now, prices);
  for (const model::LedgerLine& line : lines) sum.add(line);
  return sum.forecast();
}

base::MicroUsd dollars(std::int64_t amount) {
  return base::MicroUsd(amount * 1'000'000);
}

TEST(ForecastOfAMonth, OfAConstantHistoryIsExact) {
  const model::Millis now = october_at(10, 6);
  const Forecast month = outlook_as_of(now, {testing::used_line("vision", october_at(-400), now)});
  EXPECT_EQ(month.month, (base::Month{2026, 10}));
  EXPECT_EQ(month.booked.rounded(), dollars(984));
  ASSERT_TRUE(month.rest);
  EXPECT_EQ((month.booked + *month.rest).rounded(), dollars(31 * 96));
  EXPECT_EQ(month.days, 28);
  ASSERT_EQ(month.trials.size(), 6U);
  EXPECT_EQ(month.trials.front().month, (base::Month{2026, 4}));
  EXPECT_EQ(month.trials.back().month, (base::Month{2026, 9}));
  EXPECT_EQ(month.trials.back().said, month.trials.back().was);
  EXPECT_EQ(month.error_percent(), 0.0);
}

TEST(ForecastOfAMonth, OfAnyConstantHistoryIsExactAtAnyTime) {
  base::Prng random(38);
  for (int round = 0; round < 50; ++round) {
    const model::Millis now =
        testing::kOctober +
        static_cast<model::Millis>(random.below(static_cast<std::uint64_t>(31 * kOutlookDay)));
    model::LedgerLine line = testing::used_line("vision", october_at(-60), now);
    line.share = base::GpuShare(static_cast<std::int64_t>(1 + random.below(7000)));
    line.discount = static_cast<std::uint32_t>(random.below(10'000));
    const Forecast month = outlook_as_of(now, {line});
    ASSERT_TRUE(month.rest);
    EXPECT_EQ(month.booked + *month.rest,
              gpu_cost(line.share, 31 * kOutlookDay, base::MicroUsd(4'000'000), line.discount));
  }
}

TEST(ForecastOfAMonth, KnowsTheDaysOfTheWeek) {
  std::vector<model::LedgerLine> lines;
  for (int day = -28; day < 10; ++day) {
    const int weekday = (day + 28 + 3) % 7;  // from Monday on
    if (weekday < 5) {
      lines.push_back(testing::used_line("vision", october_at(day), october_at(day + 1)));
    }
  }
  const Forecast month = outlook_as_of(october_at(10), lines);
  EXPECT_EQ(month.booked.rounded(), dollars(7 * 96));
  ASSERT_TRUE(month.rest);
  EXPECT_EQ(month.rest->rounded(), dollars(15 * 96)) << "of 22 days from Monday to Friday";
  EXPECT_EQ(month.means[0].rounded(), dollars(96));
  EXPECT_EQ(month.means[4].rounded(), dollars(96));
  EXPECT_EQ(month.means[5], ExactCost());
  EXPECT_TRUE(month.trials.empty()) << "nothing is known of September's first days";
  EXPECT_FALSE(month.error_percent());
}

TEST(ForecastOfAMonth, NeedsTwoWeeksOfHistory) {
  const model::Millis now = october_at(8);
  const auto of_history_since = [&](model::Millis begin) {
    return outlook_as_of(now, {testing::used_line("vision", begin, now)});
  };
  EXPECT_FALSE(of_history_since(october_at(-5)).rest);
  EXPECT_FALSE(of_history_since(october_at(-6, 1)).rest) << "its first day is not whole";
  const Forecast month = of_history_since(october_at(-6));
  EXPECT_EQ(month.days, 14);
  EXPECT_TRUE(month.rest);
  const Forecast none = outlook_as_of(now, {});
  EXPECT_EQ(none.days, 0);
  EXPECT_FALSE(none.rest);
}

TEST(ForecastOfAMonth, SaysHowFarItWasOff) {
  // A second GPU from September 11 on, which the method could not know of then: 30 × 96 instead of
  // 10 × 96 + 20 × 192. Of the days before August 11 too little is known.
  const model::Millis now = october_at(10);
  const Forecast month =
      outlook_as_of(now, {testing::used_line("vision", october_at(-61), now),
                          testing::used_line("vision", october_at(-20), october_at(0))});
  ASSERT_EQ(month.trials.size(), 1U);
  EXPECT_EQ(month.trials[0].month, (base::Month{2026, 9}));
  EXPECT_EQ(month.trials[0].at, october_at(-20));
  EXPECT_EQ(month.trials[0].said.rounded(), dollars(2880));
  EXPECT_EQ(month.trials[0].was.rounded(), dollars(4800));
  ASSERT_TRUE(month.error_percent());
  EXPECT_DOUBLE_EQ(*month.error_percent(), 40);
}

TEST(ForecastOfAMonth, DoesNotExpectACorrectionAgain) {
  const model::Millis now = october_at(10, 6);
  const Forecast month =
      outlook_as_of(now, {testing::used_line("vision", october_at(-400), now),
                          testing::correction_line("vision", october_at(5), -100'000'000)});
  EXPECT_EQ(month.booked.rounded(), dollars(884));
  ASSERT_TRUE(month.rest);
  EXPECT_EQ(month.rest->rounded(), dollars(31 * 96 - 984));
}

TEST(ForecastOfAMonth, TriesNoMonthThatWasOverByThen) {
  const model::Millis now = october_at(30, 12);
  const Forecast month = outlook_as_of(now, {testing::used_line("vision", october_at(-400), now)});
  ASSERT_EQ(month.trials.size(), 3U) << "May, July and August have a 31st";
  EXPECT_EQ(month.trials[0].month, (base::Month{2026, 5}));
}

TEST(ForecastOfAMonth, IdleTimeIsHistoryToo) {
  const model::Millis now = october_at(10);
  const Forecast month = outlook_as_of(
      now, {testing::rest_line(model::RestKind::kIdle, october_at(-30), october_at(3)),
            testing::used_line("vision", october_at(3), now)});
  EXPECT_EQ(month.days, 28);
  EXPECT_TRUE(month.rest);
}

}  // namespace
}  // namespace gpu_platform::accounting
