#include "mps/mps_words.h"

#include <gtest/gtest.h>

namespace gpu_emulator {
namespace {

TEST(MpsWords, PercentagesLieAboveZeroAndUpToHundred) {
  EXPECT_EQ(parse_percentage("33.3"), 33.3);
  EXPECT_EQ(parse_percentage("100"), 100);
  for (const char* const text : {"0", "-5", "130", "100.1", "abc", "", "nan"}) {
    EXPECT_FALSE(parse_percentage(text)) << text;
  }
  EXPECT_EQ(written_percentage(100), "100.0");
  EXPECT_EQ(written_percentage(33.3), "33.3");
}

TEST(MpsWords, LimitsHaveTheFormsOfTheRealProgram) {
  EXPECT_EQ(parse_pinned_limit("3G"), 3072U);
  EXPECT_EQ(parse_pinned_limit("7g"), 7168U);
  EXPECT_EQ(parse_pinned_limit("512M"), 512U);
  EXPECT_EQ(parse_pinned_limit("5"), 5U);
  EXPECT_EQ(parse_pinned_limit("3T"), 3U) << "another unit is not looked at";
  EXPECT_EQ(parse_pinned_limit("100K"), 100U);
  for (const char* const text : {"0", "abc", "", "-2G"}) EXPECT_EQ(parse_pinned_limit(text), 0U);

  EXPECT_EQ(written_pinned_limit(20'480), "20G");
  EXPECT_EQ(written_pinned_limit(1'000), "1000M");
  EXPECT_EQ(written_pinned_limit(3'584), "3G") << "the rest is not shown";
}

TEST(MpsWords, LimitsOfDevicesAreReadBackExactly) {
  const PinnedLimits limits = parse_pinned_limits("0=3G,1=512M,2=0,x,3");
  EXPECT_EQ(limits, (PinnedLimits{{0, 3072}, {1, 512}}));
  EXPECT_EQ(written_pinned_limits(limits), "0=3072M,1=512M");
  EXPECT_EQ(parse_pinned_limits(written_pinned_limits(limits)), limits);
  EXPECT_EQ(parse_pinned_limits(""), PinnedLimits());
  EXPECT_EQ(written_pinned_limits({}), "");
}

TEST(MpsWords, TheLowerLimitsHold) {
  const MpsLimits server{50, {{0, 4096}, {1, 100}}};
  const MpsLimits client{30, {{0, 8192}, {2, 7}}};
  EXPECT_EQ(narrower(server, client), (MpsLimits{30, {{0, 4096}, {1, 100}, {2, 7}}}));
  EXPECT_EQ(narrower(client, server), narrower(server, client));
  EXPECT_EQ(narrower(server, {}), server);
}

TEST(MpsWords, AreSeparatedBySpaces) {
  EXPECT_EQ(words_of("  quit -t\t5\n"), (std::vector<std::string>{"quit", "-t", "5"}));
  EXPECT_EQ(words_of(" "), std::vector<std::string>());
  EXPECT_EQ(number_at("12x"), 12);
  EXPECT_EQ(number_at("x"), 0);
}

}  // namespace
}  // namespace gpu_emulator
