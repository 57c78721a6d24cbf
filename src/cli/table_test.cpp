#include "cli/table.h"

#include <sstream>

#include <gtest/gtest.h>

#include "cli/text.h"

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
  EXPECT_EQ(sample().render(0),
            "  ID  NAME    GPUS  REASON\n"
            "   7  train      8  1 node is 4 GPUs short\n"
            "1042  日本語    16  -\n");
}

TEST(Table, FitsTheTerminalByCuttingTheWidestColumnThatMayBeCut) {
  EXPECT_EQ(sample().render(34),
            "  ID  NAME    GPUS  REASON\n"
            "   7  train      8  1 node is 4 G…\n"
            "1042  日本語    16  -\n");
  for (const std::size_t width : {24, 30, 40, 80}) {
    std::istringstream lines(sample().render(width));
    for (std::string line; std::getline(lines, line);)
      EXPECT_LE(display_width(line), width) << line;
  }
}

TEST(Table, KeepsTheLeastWidthsOnATerminalThatIsTooNarrow) {
  EXPECT_EQ(sample().render(5),
            "  ID  NAME  GPUS  REASON\n"
            "   7  tra…     8  1 nod…\n"
            "1042  日…     16  -\n");
}

TEST(Table, LeavesColumnsOutBeforeItIsWiderThanTheTerminal) {
  Table table({{"NODE"},
               {"TEMP", Align::kRight, std::nullopt, 1},
               {"UUID", Align::kLeft, 8, 2},
               {"REASON", Align::kLeft, 6}});
  table.add({"dgx-1", "61 °C", "GPU-0123456789", "a fan is loud"});
  EXPECT_EQ(table.render(36),
            "NODE    TEMP  UUID        REASON\n"
            "dgx-1  61 °C  GPU-01234…  a fan is …\n");
  EXPECT_EQ(table.render(28),
            "NODE    TEMP  REASON\n"
            "dgx-1  61 °C  a fan is loud\n");
  EXPECT_EQ(table.render(15),
            "NODE   REASON\n"
            "dgx-1  a fan i…\n");
}

TEST(Table, ShowsNothingThatWouldSpeakToTheTerminal) {
  Table table({{"NAME"}});
  table.add({"\x1b[2Jgone\n"});
  EXPECT_EQ(table.render(0), "NAME\n?[2Jgone?\n");
}

}  // namespace
}  // namespace gpu_platform::cli
