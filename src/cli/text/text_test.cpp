#include "cli/text/text.h"

#include <cstdlib>
#include <ctime>

#include <gtest/gtest.h>

namespace gpu_platform::cli {
namespace {

TEST(Harmless, LeavesTextOfAnyLanguageAlone) {
  for (const std::string_view text : {"train", "müller", "日本語", "a😀b", ""}) {
    EXPECT_EQ(harmless(text), text);
  }
}

TEST(Harmless, DisarmsWhatWouldSpeakToTheTerminal) {
  EXPECT_EQ(harmless("\x1b[31mred"), "?[31mred");
  EXPECT_EQ(harmless("a\nb\tc\x7f"), "a?b?c?");
  EXPECT_EQ(harmless("\xc2\x9b"
                     "31m"),
            "?31m");  // C1: control sequence introducer
  EXPECT_EQ(harmless("safe\xe2\x80\xae"
                     "exe"),
            "safe?exe");  // right-to-left override
  EXPECT_EQ(harmless("\xff\xfe"), "??");
  EXPECT_EQ(harmless("\xc0\x9b"), "??");  // overlong escape
  EXPECT_EQ(harmless("\xe6\x97"), "??");  // cut off
}

TEST(DisplayWidth, CountsColumnsNotBytes) {
  EXPECT_EQ(display_width("abc"), 3U);
  EXPECT_EQ(display_width("müll"), 4U);
  EXPECT_EQ(display_width("日本"), 4U);
  EXPECT_EQ(display_width("e\xcc\x81"), 1U);  // e with a combining accent
}

TEST(Shortened, NeverCutsACharacterAndNeverPassesTheWidth) {
  EXPECT_EQ(shortened("training", 8), "training");
  EXPECT_EQ(shortened("training", 5), "trai…");
  EXPECT_EQ(shortened("日本語", 4), "日…");
  EXPECT_EQ(shortened("日本語", 5), "日本…");
  EXPECT_EQ(shortened("abc", 1), "…");
  EXPECT_EQ(shortened("abc", 0), "");
  for (std::size_t width = 0; width < 12; ++width) {
    EXPECT_LE(display_width(shortened("a日b本c語d😀", width)), width);
    EXPECT_EQ(harmless(shortened("a日b本c語d😀", width)).find('?'), std::string::npos);
  }
}

TEST(Age, ShowsTwoUnits) {
  EXPECT_EQ(age(base::seconds(0)), "0s");
  EXPECT_EQ(age(base::seconds(-5)), "0s");
  EXPECT_EQ(age(base::milliseconds(59'999)), "59s");
  EXPECT_EQ(age(base::seconds(192)), "3m12s");
  EXPECT_EQ(age(base::minutes(125)), "2h05m");
  EXPECT_EQ(age(base::hours(99)), "4d03h");
}

TEST(ReadableSize, KeepsTheUnitsApart) {
  EXPECT_EQ(readable_size(0), "0 B");
  EXPECT_EQ(readable_size(1023), "1023 B");
  EXPECT_EQ(readable_size(std::int64_t{80} << 30), "80 GiB");
  EXPECT_EQ(readable_size((std::int64_t{3} << 30) / 2), "1.5 GiB");
  EXPECT_EQ(readable_size(std::int64_t{2} << 40), "2 TiB");
}

TEST(ShellQuoted, IsReadBackByAShell) {
  EXPECT_EQ(shell_quoted({"python", "train.py", "--lr=0.1"}), "python train.py --lr=0.1");
  EXPECT_EQ(shell_quoted({"sh", "-c", "echo 'a b' $HOME"}), "sh -c 'echo '\\''a b'\\'' $HOME'");
  EXPECT_EQ(shell_quoted({"", "*"}), "'' '*'");
}

TEST(Counted, KnowsThePlural) {
  EXPECT_EQ(counted(0, "job"), "0 jobs");
  EXPECT_EQ(counted(1, "job"), "1 job");
  EXPECT_EQ(counted(2, "job"), "2 jobs");
}

TEST(Text, NumbersInARowAreARange) {
  EXPECT_EQ(ranges_of({}), "");
  EXPECT_EQ(ranges_of(std::vector<std::int64_t>{4}), "4");
  EXPECT_EQ(ranges_of(std::vector<std::int64_t>{0, 1, 2, 3, 6, 8, 9}), "0-3,6,8-9");
  EXPECT_EQ(ranges_of(std::vector<std::int64_t>{3, 1, 2}), "3,1-2");
}

TEST(Text, IsWrappedAtWordsAndLongWordsWhereTheLineEnds) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(wrapped("", 10), (Lines{""}));
  EXPECT_EQ(wrapped("when job 45 ends", 0), (Lines{"when job 45 ends"}));
  EXPECT_EQ(wrapped("when job 45 ends", 11), (Lines{"when job 45", "ends"}));
  EXPECT_EQ(wrapped("a 123456789 b", 4), (Lines{"a", "1234", "5678", "9 b"}));
  EXPECT_EQ(wrapped("日本語 語", 4), (Lines{"日本", "語", "語"}));
}

TEST(Text, ShowsTimesOfTheDaemonInTheLocalZone) {
  EXPECT_EQ(with_local_times("no time, 2026-07-01 or 12:00Z"), "no time, 2026-07-01 or 12:00Z");
  EXPECT_EQ(with_local_times("by 2026-07-01T12:00:00Z; later"),
            "by " + local_time(base::Instant(1'782'907'200'000'000'000)) + "; later");
}

}  // namespace
}  // namespace gpu_platform::cli
