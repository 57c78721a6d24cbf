#include "base/parse.h"

#include <limits>

#include <gtest/gtest.h>

#include "base/prng.h"

namespace gpu_platform::base {
namespace {

struct DurationCase {
  std::string_view text;
  std::int64_t seconds;
};

TEST(ParseDuration, ReadsEveryFormOfTheContract) {
  const DurationCase cases[] = {
      {"90s", 90},
      {"15m", 900},
      {"2h", 7200},
      {"1d", 86400},
      {"45", 2700},
      {"01:02:03", 3723},
      {"100:00:00", 360'000},
      {"0", 0},
      {"0s", 0},
      {"2H", 7200},
      {"1:00:00", 3600},
      {"1-00:00:00", 86400},
      {"2-3", 183'600},
      {"0-1:30", 5400},
      {"1-23:59:59", 172'799},
  };
  for (const auto& [text, expected] : cases) {
    const auto parsed = parse_duration(text);
    ASSERT_TRUE(parsed.has_value()) << text << ": " << parsed.error().message;
    EXPECT_EQ(*parsed, seconds(expected)) << text;
  }
}

TEST(ParseDuration, RefusesWhatIsNotInTheContract) {
  for (const std::string_view text :
       {"",         "-5",        "+5",      "5 m",     " 5m", "5m ",      "1.5h",     "1h30m",
        "12:30",    "1:60:00",   "1:00:60", "1:2:3:4", "::",  "1::1",     "1:001:00", "5x",
        "m",        "5ms",       "٣m",      "1e3",     "1-",  "-1:00:00", "1-24",     "1-00:60",
        "1-0:0:60", "1-0:0:0:0", "1--1",    "1-2-3",   "1-2h"}) {
    const auto parsed = parse_duration(text);
    ASSERT_FALSE(parsed.has_value()) << text;
    EXPECT_EQ(parsed.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(parsed.error().message.find("HH:MM:SS"), std::string::npos) << parsed.error().message;
  }
}

TEST(ParseDuration, RefusesWhatDoesNotFitInsteadOfWrapping) {
  for (const std::string_view text :
       {"106752d", "9223372037s", "99999999999999999999999s", "9223372036854775807",
        "2562048:00:00", "99999999999999999999:00:00", "106752-00", "99999999999999999999-0"}) {
    const auto parsed = parse_duration(text);
    ASSERT_FALSE(parsed.has_value()) << text;
    EXPECT_NE(parsed.error().message.find("too large"), std::string::npos)
        << parsed.error().message;
  }
  EXPECT_TRUE(parse_duration("106751d").has_value());
}

struct SizeCase {
  std::string_view text;
  std::int64_t bytes;
};

TEST(ParseSize, ReadsEveryFormOfTheContract) {
  constexpr std::int64_t kGi = std::int64_t{1} << 30;
  const SizeCase cases[] = {{"16G", 16 * kGi},
                            {"16GB", 16'000'000'000},
                            {"16GiB", 16 * kGi},
                            {"512", 512 * (kGi / 1024)},
                            {"16g", 16 * kGi},
                            {"100B", 100},
                            {"3K", 3072},
                            {"3kB", 3000},
                            {"2T", 2048 * kGi},
                            {"1PB", 1'000'000'000'000'000},
                            {"0", 0}};
  for (const auto& [text, expected] : cases) {
    const auto parsed = parse_size(text);
    ASSERT_TRUE(parsed.has_value()) << text << ": " << parsed.error().message;
    EXPECT_EQ(parsed->value(), expected) << text;
  }
}

TEST(ParseSize, RefusesMalformedAndOversizedText) {
  for (const std::string_view text :
       {"", "-1G", "1.5G", "16 G", "G", "16X", "16GiBs", "8192P", "9223372036854775807", "0x10"}) {
    EXPECT_FALSE(parse_size(text).has_value()) << text;
  }
}

TEST(ParseGpuShare, ReadsThousandthsExactly) {
  const std::pair<std::string_view, std::int64_t> cases[] = {
      {"0.5", 3500}, {"0.25", 1750}, {"0.001", 7}, {"0.999", 6993}, {".5", 3500}, {"0.500", 3500}};
  for (const auto& [text, share] : cases) {
    const auto parsed = parse_gpu_share(text);
    ASSERT_TRUE(parsed.has_value()) << text << ": " << parsed.error().message;
    EXPECT_EQ(*parsed, GpuShare(share)) << text;
  }
}

TEST(ParseGpuShare, RefusesWhatIsNoPartOfOneGpu) {
  for (const std::string_view text :
       {"", "1", "0", "1.5", "0.", "0.0", "0.000", "-0.5", "+0.5", "0.5x", "0,5", "1e-1", "0.1234",
        "0.0001", " 0.5", "0.5 ", "0..5", "nan"}) {
    EXPECT_FALSE(parse_gpu_share(text).has_value()) << text;
  }
  EXPECT_EQ(parse_gpu_share("0.1234").error().message,
            "'0.1234' has more than three decimals: write 0.123");
  EXPECT_EQ(parse_gpu_share("0.0001").error().message,
            "'0.0001' has more than three decimals: write 0.001");
  EXPECT_EQ(parse_gpu_share("0.0").error().message, "'0.0' is no part: the least is 0.001");
}

TEST(ParseShortDuration, AlsoReadsMilliseconds) {
  EXPECT_EQ(parse_short_duration("100ms").value(), milliseconds(100));
  EXPECT_EQ(parse_short_duration("10s").value(), seconds(10));
  EXPECT_EQ(parse_short_duration("1m").value(), seconds(60));
  for (const std::string_view text : {"ms", "-1ms", "1.5ms", "99999999999999999999ms"}) {
    EXPECT_FALSE(parse_short_duration(text).has_value()) << text;
  }
}

TEST(ParseCount, KeepsToItsBounds) {
  EXPECT_EQ(parse_count("8", 0, 8).value(), 8U);
  EXPECT_FALSE(parse_count("9", 0, 8).has_value());
  EXPECT_FALSE(parse_count("0", 1, 8).has_value());
  EXPECT_FALSE(parse_count("18446744073709551616", 0, UINT64_MAX).has_value());
  EXPECT_EQ(parse_count("18446744073709551615", 0, UINT64_MAX).value(), UINT64_MAX);
  for (const std::string_view text : {"", "-1", "1 ", " 1", "1x", "x"}) {
    EXPECT_FALSE(parse_count(text, 0, 8).has_value()) << text;
  }
}

TEST(ParseMessages, ShowNoControlCharactersAndNotPages) {
  const auto parsed = parse_duration(std::string("\x1b[31m") + std::string(5000, 'x'));
  ASSERT_FALSE(parsed.has_value());
  EXPECT_EQ(parsed.error().message.find('\x1b'), std::string::npos);
  EXPECT_LT(parsed.error().message.size(), 300U);
}

TEST(ParseMoney, ReadsDecimalsExactly) {
  const std::pair<std::string_view, std::int64_t> cases[] = {
      {"0.526", 526'000}, {"4.10", 4'100'000},
      {"3", 3'000'000},   {"0.000001", 1},
      {"0", 0},           {"007.5", 7'500'000},
      {"0.1", 100'000},   {"1000000000", 1'000'000'000'000'000}};
  for (const auto& [text, micros] : cases) {
    const auto parsed = parse_money(text);
    ASSERT_TRUE(parsed.has_value()) << text;
    EXPECT_EQ(parsed->value(), micros) << text;
  }
}

TEST(ParseMoney, RefusesWhatIsNoAmount) {
  for (const std::string_view text :
       {"", ".", ".5", "5.", "-1", "+1", "1e3", "$4", "4.10 USD", "1,000", "1.2.3", "0x10", "nan",
        " 1", "0.1234567", "0.0000000", "1000000000.000001", "1000000001",
        "99999999999999999999"}) {
    EXPECT_FALSE(parse_money(text).has_value()) << text;
  }
}

TEST(ParseMoney, MayHaveASignWhereThatIsAsked) {
  EXPECT_EQ(parse_signed_money("-12.5").value(), MicroUsd(-12'500'000));
  EXPECT_EQ(parse_signed_money("12.5").value(), MicroUsd(12'500'000));
  EXPECT_FALSE(parse_signed_money("--1").has_value());
  EXPECT_FALSE(parse_signed_money("-").has_value());
}

TEST(Written, MoneyHasTwoDecimalsAndAllThatItNeeds) {
  EXPECT_EQ(written(MicroUsd(4'100'000)), "4.10");
  EXPECT_EQ(written(MicroUsd(526'000)), "0.526");
  EXPECT_EQ(written(MicroUsd(1)), "0.000001");
  EXPECT_EQ(written(MicroUsd()), "0.00");
  EXPECT_EQ(written(MicroUsd(-12'500'000)), "-12.50");
  EXPECT_EQ(written(MicroUsd(std::numeric_limits<std::int64_t>::min())), "-9223372036854.775808");
}

TEST(Written, SharesAreNumbersOfGpus) {
  EXPECT_EQ(written_share(GpuShare(3500)), "0.5");
  EXPECT_EQ(written_share(GpuShare(1750)), "0.25");
  EXPECT_EQ(written_share(kWholeGpu), "1");
  EXPECT_EQ(written_share(GpuShare(15'750)), "2.25");
  EXPECT_EQ(written_share(GpuShare(1000)), "0.143");
  EXPECT_EQ(written_share(GpuShare()), "0");
}

TEST(Written, ShortDurationsKeepTheirMilliseconds) {
  EXPECT_EQ(written_short(milliseconds(100)), "100ms");
  EXPECT_EQ(written_short(milliseconds(1500)), "1500ms");
  EXPECT_EQ(written_short(seconds(10)), "10s");
}

TEST(Written, IsReadBackExactly) {
  Prng random(7);
  for (int i = 0; i < 2000; ++i) {
    const Duration duration =
        seconds(static_cast<std::int64_t>(random.below(1 + random.below(9'000'000'000))));
    EXPECT_EQ(parse_duration(written(duration)).value(), duration) << written(duration);
    const Bytes size(static_cast<std::int64_t>(random.next() >> (1 + random.below(62))));
    EXPECT_EQ(parse_size(written(size)).value(), size) << written(size);
    const MicroUsd money(static_cast<std::int64_t>(random.below(2'000'000'000'000'001)) -
                         1'000'000'000'000'000);
    EXPECT_EQ(parse_signed_money(written(money)).value(), money) << written(money);
  }
  EXPECT_EQ(written(hours(48)), "2d");
  EXPECT_EQ(written(seconds(90)), "90s");
  EXPECT_EQ(written(kGiB * 16), "16G");
  EXPECT_EQ(written(Bytes(0)), "0B");
}

}  // namespace
}  // namespace gpu_platform::base
