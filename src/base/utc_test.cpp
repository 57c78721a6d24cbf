#include "base/utc.h"

#include <gtest/gtest.h>

#include "base/prng.h"

namespace gpu_platform::base {
namespace {

TEST(Utc, WritesWhatTheFractionHolds) {
  const Instant at(1'782'907'200'250'999'001);
  EXPECT_EQ(utc(at), "2026-07-01T12:00:00Z");
  EXPECT_EQ(utc(at, Fraction::kMilliseconds), "2026-07-01T12:00:00.250Z");
  EXPECT_EQ(utc(at, Fraction::kMicroseconds), "2026-07-01T12:00:00.250999Z");
  EXPECT_EQ(utc(at, Fraction::kNanoseconds), "2026-07-01T12:00:00.250999001Z");
  std::string text = "at ";
  append_rfc3339(text, at);
  EXPECT_EQ(text, "at 2026-07-01T12:00:00.250Z");
}

TEST(Utc, KnowsTheCalendar) {
  EXPECT_EQ(utc(Instant(0)), "1970-01-01T00:00:00Z");
  EXPECT_EQ(utc(Instant(-1), Fraction::kNanoseconds), "1969-12-31T23:59:59.999999999Z");
  for (const char* text :
       {"2000-02-29T23:59:59Z", "2028-02-29T00:00:00Z", "2100-02-28T23:59:59Z",
        "2100-03-01T00:00:00Z", "2026-12-31T23:59:59Z", "2261-12-31T23:59:59Z"}) {
    const auto at = parse_rfc3339(text);
    ASSERT_TRUE(at) << text;
    EXPECT_EQ(utc(*at), text);
  }
}

TEST(Utc, ReadsBackWhatItWrote) {
  Prng prng(3);
  for (int i = 0; i < 1000; ++i) {
    const Instant at(static_cast<std::int64_t>(prng.below(9'200'000'000'000'000'000)));
    EXPECT_EQ(parse_rfc3339(utc(at, Fraction::kNanoseconds)), at);
  }
}

TEST(Utc, ReadsOffsetsAndFractions) {
  const auto at = parse_rfc3339("2026-11-22T08:36:36Z");
  ASSERT_TRUE(at);
  EXPECT_EQ(parse_rfc3339("2026-11-22T10:36:36+02:00"), at);
  EXPECT_EQ(parse_rfc3339("2026-11-21t23:06:36-09:30"), at);
  EXPECT_EQ(parse_rfc3339("2026-11-22 08:36:36.0z"), at);
  EXPECT_EQ(parse_rfc3339("2026-11-22T08:36:36.000250Z"), *at + microseconds(250));
}

TEST(Utc, RefusesWhatIsNoTime) {
  for (const char* text :
       {"", "null", "2026-11-22", "2026-11-22T08:36:36", "2026-13-01T00:00:00Z",
        "2026-00-10T00:00:00Z", "2027-02-29T00:00:00Z", "2026-11-22T24:00:00Z",
        "2026-11-22T23:60:00Z", "2026-11-22T23:59:60Z", "2026-11-22T08:36:36.Z",
        "2026-11-22T08:36:36.1234567890Z", "2026-11-22T08:36:36+2:00", "2026-11-22T08:36:36+0200",
        "2026-11-22T08:36:36Z ", " 2026-11-22T08:36:36Z", "26-11-22T08:36:36Z"}) {
    EXPECT_FALSE(parse_unix_time(text)) << text;
  }
}

TEST(Utc, TellsTimesThatNoInstantHolds) {
  EXPECT_EQ(parse_unix_time("1969-12-31T23:59:59.5Z"), (UnixTime{-1, 500'000'000}));
  EXPECT_EQ(parse_unix_time("9999-12-31T23:59:59Z"), (UnixTime{253'402'300'799, 0}));
  for (const char* text : {"1969-12-31T23:59:59Z", "1970-01-01T00:00:00+00:01",
                           "2262-01-01T00:00:00Z", "9999-12-31T23:59:59Z"}) {
    EXPECT_FALSE(parse_rfc3339(text)) << text;
  }
}

}  // namespace
}  // namespace gpu_platform::base
