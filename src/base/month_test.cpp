#include "base/month.h"

#include <gtest/gtest.h>

#include "base/utc.h"

namespace gpu_platform::base {
namespace {

TEST(MonthTest, HasItsBeginAndItsEnd) {
  EXPECT_EQ(utc(begin_of({2026, 2})), "2026-02-01T00:00:00Z");
  EXPECT_EQ(utc(end_of({2026, 2})), "2026-03-01T00:00:00Z");
  EXPECT_EQ(utc(end_of({2026, 12})), "2027-01-01T00:00:00Z");
  EXPECT_EQ(end_of({2028, 2}) - begin_of({2028, 2}), hours(29 * 24));
}

TEST(MonthTest, OfAnInstant) {
  EXPECT_EQ(month_of(begin_of({2026, 10})), (Month{2026, 10}));
  EXPECT_EQ(month_of(begin_of({2026, 10}) + nanoseconds(-1)), (Month{2026, 9}));
  EXPECT_EQ(month_of(Instant()), (Month{1970, 1}));
}

TEST(MonthTest, CountsOverYears) {
  EXPECT_EQ(plus_months({2026, 11}, 3), (Month{2027, 2}));
  EXPECT_EQ(plus_months({2026, 1}, -1), (Month{2025, 12}));
}

TEST(MonthTest, ReadsWhatItWrites) {
  EXPECT_EQ(to_string({2026, 3}), "2026-03");
  EXPECT_EQ(parse_month("2026-03"), (Month{2026, 3}));
  for (const auto* text : {"", "2026", "2026-3", "2026-00", "2026-13", "1969-12", "2262-01",
                           "2026/03", "2026-1a", "20260-1", " 2026-1"}) {
    EXPECT_FALSE(parse_month(text)) << text;
  }
}

}  // namespace
}  // namespace gpu_platform::base
