#include "cli/words/time_expression.h"

#include <gtest/gtest.h>

#include <string>

#include "cli/text/text.h"

namespace gpu_platform::cli {
namespace {

constexpr base::Instant kNow(1'700'000'000'000'000'000);

TEST(TimeExpression, CountsFromNow) {
  EXPECT_EQ(parse_future_time("now", kNow), kNow);
  EXPECT_EQ(parse_future_time("now+2h", kNow), kNow + base::hours(2));
  EXPECT_EQ(parse_future_time("now+90", kNow), kNow + base::seconds(90));
  EXPECT_EQ(parse_future_time("now+3hours", kNow), kNow + base::hours(3));
  EXPECT_EQ(parse_future_time("now+1day", kNow), kNow + base::hours(24));
  EXPECT_EQ(parse_future_time("now+90s", kNow), kNow + base::seconds(90));
}

TEST(TimeExpression, ReadsRfc3339) {
  EXPECT_EQ(parse_future_time("2023-11-14T22:13:20Z", kNow), kNow);
  EXPECT_EQ(parse_future_time("2023-11-14T23:13:20+01:00", kNow), kNow);
}

TEST(TimeExpression, AClockTimeIsTheNextOne) {
  for (const char* text : {"00:00", "06:30", "12:00:00", "23:59", "noon", "midnight"}) {
    const auto at = parse_future_time(text, kNow);
    ASSERT_TRUE(at) << text;
    EXPECT_GE(*at, kNow) << text;
    EXPECT_LE(*at - kNow, base::hours(25)) << text;
  }
  EXPECT_EQ(local_time(*parse_future_time("06:30", kNow)).substr(11, 5), "06:30");
}

TEST(TimeExpression, ADateIsOfTheLocalTimeZone) {
  EXPECT_EQ(local_time(*parse_future_time("2030-01-31T12:00", kNow)).substr(0, 16),
            "2030-01-31 12:00");
  EXPECT_EQ(local_time(*parse_future_time("2030-01-31", kNow)).substr(0, 16), "2030-01-31 00:00");
}

TEST(TimeExpression, APastTimeIsTheLastOne) {
  for (const char* text : {"00:00", "23:59", "now", "today", "yesterday", "monday", "sunday"}) {
    const auto at = parse_past_time(text, kNow);
    ASSERT_TRUE(at) << text;
    EXPECT_LE(*at, kNow) << text;
    EXPECT_LE(kNow - *at, base::hours(7 * 24 + 1)) << text;
  }
  EXPECT_EQ(local_time(*parse_past_time("2023-01-31 12:00", kNow)).substr(0, 16),
            "2023-01-31 12:00");
  EXPECT_FALSE(parse_past_time("someday", kNow));
}

TEST(TimeExpression, RefusesTheRest) {
  for (const char* text : {"", "soon", "now+", "now-1h", "25:00", "2030-13-01", "now+9999999999",
                           "now+999999weeks", "12"}) {
    EXPECT_FALSE(parse_future_time(text, kNow)) << text;
  }
}

}  // namespace
}  // namespace gpu_platform::cli
