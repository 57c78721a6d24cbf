#include "cli/text/table.h"

#include <sstream>

#include <gtest/gtest.h>

#include "cli/text/state_color.h"
#include "cli/text/text.h"

namespace gpu_platform::cli {
namespace {

using Align = Column::Align;

Table sample() {
  Table table({{"ID", Align::kRight},
               {"NAME", Align::kLeft, 4},
               {"GPUS", Align::kRight},
               {"REASON", Align::kLeft, 6}});
  table.add({"7", "train", "8", "1 node is 4 GPUs short"});
  table.add({"1042", "日本語", "16", ""});
  return table;
}

TEST(Table, LinesUpNumbersRightAndWordsLeft) {
  EXPECT_EQ(sample().render({}),
            "  ID  NAME    GPUS  REASON\n"
            "   7  train      8  1 node is 4 GPUs short\n"
            "1042  日本語    16  -\n");
}

TEST(Table, FitsTheTerminalByCuttingTheWidestColumnThatMayBeCut) {
  EXPECT_EQ(sample().render({.width = 34}),
            "  ID  NAME    GPUS  REASON\n"
            "   7  train      8  1 node is 4 G…\n"
            "1042  日本語    16  -\n");
  for (const std::size_t width : {24, 30, 40, 80}) {
    std::istringstream lines(sample().render({.width = width}));
    for (std::string line; std::getline(lines, line);)
      EXPECT_LE(display_width(line), width) << line;
  }
}

TEST(Table, IsNeverWiderThanTheTerminal) {
  for (std::size_t width = 1; width <= 60; ++width) {
    std::istringstream lines(sample().render({.width = width}));
    for (std::string line; std::getline(lines, line);)
      EXPECT_LE(display_width(line), std::max<std::size_t>(width, 2)) << line;
  }
}

TEST(Table, WrapsAtWordsWhatItMayWrap) {
  Table table({{"ID", Align::kRight}, {.title = "REASON", .cut_to = 10, .wraps = true}, {"GPUS"}});
  table.add({"7", "1 of 2 nodes is draining or down", "8"});
  table.add({"8", "short", "1"});
  EXPECT_EQ(table.render({.width = 24}),
            "ID  REASON          GPUS\n"
            " 7  1 of 2 nodes    8\n"
            "    is draining or\n"
            "    down\n"
            " 8  short           1\n");
  EXPECT_EQ(table.render({.width = 24, .is_one_line = true}),
            "ID  REASON          GPUS\n"
            " 7  1 of 2 nodes …  8\n"
            " 8  short           1\n");
}

TEST(Table, CutsNoIdAndNoNumber) {
  Table table({{"ID"}, {.title = "NAME", .cut_to = 4}});
  table.add({"123456789", "train"});
  EXPECT_EQ(table.render({.width = 11}),
            "ID     NAME\n"
            "12345  tra…\n"
            "6789\n");
}

TEST(Table, ShowsANarrowColumnInsteadOfAWideOne) {
  Table table({{"ID"},
               {.title = "SUBMITTED", .expendable = 1},
               {.title = "AGE", .instead_of = "SUBMITTED"}});
  table.add({"7", "2026-07-01 12:00", "2h"});
  EXPECT_EQ(table.render({}), "ID  SUBMITTED\n7   2026-07-01 12:00\n");
  EXPECT_EQ(table.render({.width = 10}), "ID  AGE\n7   2h\n");
}

TEST(Table, ColorsStatesAndNothingElse) {
  Table table({{"ID"}, {.title = "STATE", .is_state = true}, {"REASON"}});
  table.add({"7", "RUNNING", "FAILED"});
  table.add({"8", "FAILED", ""});
  table.add({"9", "QUEUED", ""});
  EXPECT_EQ(table.render({.has_colors = true}),
            "ID  STATE    REASON\n"
            "7   \x1b[32mRUNNING\x1b[0m  FAILED\n"
            "8   \x1b[31mFAILED\x1b[0m   -\n"
            "9   QUEUED   -\n");
  EXPECT_EQ(without_colors(table.render({.has_colors = true})), table.render({}));
}

TEST(Table, HasNoTitlesWhereNoneAreWanted) {
  Table table({{"ID"}, {"NAME"}});
  table.add({"7", "train"});
  EXPECT_EQ(table.render({.has_titles = false}), "7  train\n");
}

TEST(Table, LeavesColumnsOutBeforeItIsWiderThanTheTerminal) {
  Table table({{"NODE"},
               {"TEMP", Align::kRight, std::nullopt, 1},
               {"UUID", Align::kLeft, 8, 2},
               {"REASON", Align::kLeft, 6}});
  table.add({"dgx-1", "61 °C", "GPU-0123456789", "a fan is loud"});
  EXPECT_EQ(table.render({.width = 36}),
            "NODE    TEMP  UUID        REASON\n"
            "dgx-1  61 °C  GPU-01234…  a fan is …\n");
  EXPECT_EQ(table.render({.width = 28}),
            "NODE    TEMP  REASON\n"
            "dgx-1  61 °C  a fan is loud\n");
  EXPECT_EQ(table.render({.width = 15}),
            "NODE   REASON\n"
            "dgx-1  a fan i…\n");
}

TEST(Table, ShowsNothingThatWouldSpeakToTheTerminal) {
  Table table({{"NAME"}});
  table.add({"\x1b[2Jgone\n"});
  EXPECT_EQ(table.render({}), "NAME\n?[2Jgone?\n");
}

}  // namespace
}  // namespace gpu_platform::cli
