#include "shims/text/slurm_times.h"

#include <gtest/gtest.h>

#include "client/answer.h"
#include "shims/views/job_view.h"

namespace gpu_platform::shims {
namespace {

// A Friday.
base::Instant noon_of_november() {
  return *parse_time_expression("", "2026-11-27T08:19:38", base::Instant(1));
}

std::string read(std::string_view text, Sought sought) {
  const auto at = parse_time_expression("--time", text, noon_of_november(), sought);
  return at ? slurm_time(*at, "") : "refused";
}

std::string past(std::string_view text) {
  return read(text, Sought::kPast);
}

std::string future(std::string_view text) {
  return read(text, Sought::kFuture);
}

TEST(TimeExpressions, DatesHaveFourForms) {
  for (const char* text : {"2026-12-31", "12/31/26", "123126", "12.31.26"})
    EXPECT_EQ(future(text), "2026-12-31T00:00:00") << text;
  for (const char* text : {"2026-12-31T12:30", "2026-12-31 12:30", "2026-12-31-12:30",
                           "12/31/26-12:30", "12/31-12:30", "12:30 1231", "12:30pm-2026-12-31"})
    EXPECT_EQ(future(text), "2026-12-31T12:30:00") << text;
  EXPECT_EQ(future("2026-12-31T12:30:45"), "2026-12-31T12:30:45");
  EXPECT_EQ(past("1970-01-01-00:00:01"), "1970-01-01T00:00:01");
}

TEST(TimeExpressions, ADateWithoutAYearIsTheNextOneOrOneThatHasBeen) {
  EXPECT_EQ(future("1231"), "2026-12-31T00:00:00");
  EXPECT_EQ(past("1231"), "2025-12-31T00:00:00");
  EXPECT_EQ(future("02/03"), "2027-02-03T00:00:00");
  EXPECT_EQ(past("02/03"), "2026-02-03T00:00:00");
}

TEST(TimeExpressions, AClockTimeIsTheNextOneOrTodays) {
  EXPECT_EQ(future("16:00"), "2026-11-27T16:00:00");
  EXPECT_EQ(future("4:00"), "2026-11-28T04:00:00");
  EXPECT_EQ(past("4:00"), "2026-11-27T04:00:00");
  for (const char* text : {"4:00pm", "4:00 PM", "04:00PM", "teatime", "Teatime"})
    EXPECT_EQ(future(text), "2026-11-27T16:00:00") << text;
  EXPECT_EQ(future("12:00 am"), "2026-11-28T00:00:00");
  EXPECT_EQ(future("fika"), "2026-11-27T15:00:00");
  EXPECT_EQ(future("elevenses"), "2026-11-27T11:00:00");
  EXPECT_EQ(future("midnight"), "2026-11-28T00:00:00");
  EXPECT_EQ(past("midnight"), "2026-11-27T00:00:00");
}

TEST(TimeExpressions, WordsMayStandTogether) {
  for (const char* text : {"noon-tomorrow", "tomorrow-noon", "noon tomorrow", "tomorrowT12:00"})
    EXPECT_EQ(future(text), "2026-11-28T12:00:00") << text;
  EXPECT_EQ(past("today"), "2026-11-27T00:00:00");
  EXPECT_EQ(past("TOMORROW"), "2026-11-28T00:00:00");
}

TEST(TimeExpressions, NowHasADistance) {
  EXPECT_EQ(*parse_time_expression("-S", "now", noon_of_november()), noon_of_november());
  EXPECT_EQ(past("now-7days"), "2026-11-20T08:19:38");
  EXPECT_EQ(past("now-90"), "2026-11-27T08:18:08");
  EXPECT_EQ(future("now + 2 days"), "2026-11-29T08:19:38");
  EXPECT_EQ(future("NOW+1HOURS"), "2026-11-27T09:19:38");
  EXPECT_EQ(future("now+1week"), "2026-12-04T08:19:38");
  EXPECT_EQ(*parse_time_expression("-S", "uts1800000000", noon_of_november()),
            base::Instant(1'800'000'000'000'000'000));
}

TEST(TimeExpressions, WhatIsNoneIsRefused) {
  for (const char* text : {"",           " ",        "-",          "T",
                           "junk",       "24:00",    "13:00pm",    "8:5",
                           "2026-13-01", "2026-1-5", "12/31/2027", "now-2moons",
                           "now+",       "now-",     "now+2days3", "tomorrow-ish",
                           "+1hour",     "uts5",     "5",          "0",
                           "1",          "16:",      "16:00:",     "2026-"})
    EXPECT_EQ(past(text), "refused") << text;
}

TEST(TimeExpressions, OfAJobMayHaveThePlatformsFormsToo) {
  google::protobuf::Timestamp time;
  ASSERT_TRUE(put_coming_time("--begin", "now+2h", noon_of_november(), time));
  EXPECT_EQ(client::time_of(time), noon_of_november() + base::hours(2));
  ASSERT_TRUE(put_coming_time("begin", "2030-01-31T12:00:00Z", noon_of_november(), time));
  const auto refused = put_coming_time("--begin", "soon", noon_of_november(), time);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().field, "--begin");
}

}  // namespace
}  // namespace gpu_platform::shims
