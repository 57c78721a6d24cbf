#include "cli/text/graph.h"

#include "cli/cli_fixture_test.h"
#include "cli/text/csv.h"

namespace gpu_platform::cli {
namespace {

const base::Instant kBegin = *base::parse_rfc3339("2026-07-01T12:00:00Z");

base::Instant drawn_at(std::int64_t seconds) {
  return kBegin + base::seconds(seconds);
}

// Ten seconds, of which two have no values.
const std::vector<GraphPoint> kPoints = {{drawn_at(0), drawn_at(2), 0},
                                         {drawn_at(2), drawn_at(4), 50},
                                         {drawn_at(6), drawn_at(10), 100}};
const GraphScale kScale{drawn_at(0), drawn_at(10), 0, 100};

TEST(Sparkline, ShowsZeroAsABarAndAGapAsNone) {
  EXPECT_EQ(sparkline(kPoints, kScale, 10, false), "▁▁▄▄  ████");
  EXPECT_EQ(sparkline(kPoints, kScale, 10, true), "..::  ####");
}

TEST(Sparkline, ShowsTheMeanOfAColumn) {
  EXPECT_EQ(sparkline(kPoints, kScale, 1, false), "▅") << "(0 x 2 + 50 x 2 + 100 x 4) / 8";
  EXPECT_EQ(sparkline({}, kScale, 3, false), "   ");
}

TEST(Sparkline, LeavesOutWhatLiesOutsideAndCutsWhatIsTooHigh) {
  const std::vector<GraphPoint> points = {{drawn_at(-20), drawn_at(-10), 50},
                                          {drawn_at(5), drawn_at(30), 900}};
  EXPECT_EQ(sparkline(points, kScale, 10, true), "     #####");
}

TEST(Graph, HasItsValuesAtTheLeftAndItsTimesBelow) {
  const InUtc zone;
  const auto text = [](double value) { return fmt::format("{:.0f}", value); };
  EXPECT_EQ(graph(kPoints, kScale, text, {.width = 15, .height = 2, .is_ascii = true}),
            "100 |      ####\n"
            "  0 |..##  ####\n"
            "     12:00:00\n");
  const std::string wide = graph(kPoints, kScale, text, {.width = 60, .height = 2});
  EXPECT_TRUE(has(wide, "100 │")) << wide;
  EXPECT_TRUE(has(wide, "     2026-07-01 12:00")) << wide;
}

// The last line of a graph of that window and width, without its margin.
std::string axis_of(base::Duration window, std::size_t width) {
  const GraphScale scale{kBegin, kBegin + window, 0, 9};
  const auto text = [](double value) { return fmt::format("{:.0f}", value); };
  const std::string picture = graph({}, scale, text, {.width = width + 3, .height = 1});
  return picture.substr(picture.find('\n') + 4);
}

TEST(Graph, HasTheTimesThatItsWindowNeeds) {
  const InUtc zone;
  EXPECT_EQ(axis_of(base::minutes(1), 40), "2026-07-01 12:00:00  2026-07-01 12:01:00\n");
  EXPECT_EQ(axis_of(base::hours(2), 40), "2026-07-01 12:00        2026-07-01 14:00\n");
  EXPECT_EQ(axis_of(base::hours(2), 20), "12:00          14:00\n");
  EXPECT_EQ(axis_of(base::hours(240), 60),
            "2026-07-01 12:00      2026-07-06 12:00      2026-07-11 12:00\n");
  EXPECT_EQ(axis_of(base::hours(240), 40), "07-01            07-06             07-11\n");
  EXPECT_EQ(axis_of(base::hours(240), 12), "07-01\n");
}

TEST(Graph, IsOfAsciiWhereTheLocaleHasNoMore) {
  ProcessEnvironment environment;
  EXPECT_FALSE(has_utf8(environment));
  environment.environment = {"LANG=de_DE.UTF-8"};
  EXPECT_TRUE(has_utf8(environment));
  environment.environment.emplace_back("LC_ALL=C");
  EXPECT_FALSE(has_utf8(environment)) << "LC_ALL stands above LANG";
}

TEST(Csv, QuotesWhatItMustAndGuardsFormulas) {
  EXPECT_EQ(csv_cell("dgx-1"), "dgx-1");
  EXPECT_EQ(csv_cell("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_cell("a\"b"), "\"a\"\"b\"");
  EXPECT_EQ(csv_cell("=HYPERLINK(1)"), "'=HYPERLINK(1)");
  EXPECT_EQ(csv_cell("-1,2"), "\"'-1,2\"");
  EXPECT_EQ(csv_cell(""), "");
}

TEST(Csv, KeepsNoCharacterThatTurnsALine) {
  EXPECT_EQ(csv_cell("a\xe2\x80\xae"
                     "b"),
            "a\xef\xbf\xbd"
            "b")
      << "U+202E";
  EXPECT_EQ(csv_cell("\xd7\x90\xe2\x81\xa7"), "\xd7\x90\xef\xbf\xbd") << "a letter stays";
  EXPECT_EQ(csv_cell("a\nb"), "\"a\nb\"");
}

}  // namespace
}  // namespace gpu_platform::cli
