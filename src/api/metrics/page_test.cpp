#include "api/metrics/page.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace gpu_platform::api {
namespace {

TEST(MetricPage, HasAFamilyWithItsHelpAndTypeBeforeItsSeries) {
  MetricPage page;
  page.gauge("a_watts", "Power.").add({{"gpu", "0"}}, 412.5);
  page.counter("b_total", "Jobs.").add(7);
  EXPECT_EQ(page.text(),
            "# HELP a_watts Power.\n# TYPE a_watts gauge\na_watts{gpu=\"0\"} 412.5\n"
            "# HELP b_total Jobs.\n# TYPE b_total counter\nb_total 7\n");
}

TEST(MetricPage, PutsTheSeriesOfOneNameTogether) {
  MetricPage page;
  page.gauge("a", "A.").add({{"x", "1"}}, 1);
  page.gauge("b", "B.").add(1);
  page.gauge("a", "A.").add({{"x", "2"}}, 2);
  EXPECT_EQ(page.text(),
            "# HELP a A.\n# TYPE a gauge\na{x=\"1\"} 1\na{x=\"2\"} 2\n"
            "# HELP b B.\n# TYPE b gauge\nb 1\n");
}

TEST(MetricPage, LeavesOutAFamilyWithoutSeries) {
  MetricPage page;
  page.gauge("a", "A.");
  EXPECT_EQ(page.text(), "");
}

TEST(MetricPage, LeavesOutWhatIsNoNumber) {
  MetricPage page;
  MetricFamily& family = page.gauge("a", "A.");
  family.add(std::nan(""));
  EXPECT_EQ(page.text(), "");
  family.add(std::numeric_limits<double>::infinity());
  family.add(-std::numeric_limits<double>::infinity());
  EXPECT_EQ(page.text(), "# HELP a A.\n# TYPE a gauge\na +Inf\na -Inf\n");
}

TEST(MetricPage, WritesWholeNumbersExactlyAndFractionsShortly) {
  MetricPage page;
  MetricFamily& family = page.gauge("a", "A.");
  for (const double value : {0.0, -3.0, 9007199254740991.0, 0.1, 1e300, 0.00025}) family.add(value);
  EXPECT_EQ(page.text(),
            "# HELP a A.\n# TYPE a gauge\na 0\na -3\na 9007199254740991\na 0.1\na 1e+300\n"
            "a 0.00025\n");
}

TEST(MetricPage, WritesAHistogramAsItsSumsUpToEachBound) {
  constexpr double kBounds[] = {0.5, 2};
  base::Histogram values{kBounds};
  for (const double value : {0.25, 1.0, 1.5, 9.0}) values.add(value);
  MetricPage page;
  page.histogram("a_seconds", "A.").add({{"call", "x"}}, values);
  EXPECT_EQ(page.text(),
            "# HELP a_seconds A.\n# TYPE a_seconds histogram\n"
            "a_seconds_count{call=\"x\"} 4\na_seconds_sum{call=\"x\"} 11.75\n"
            "a_seconds_bucket{call=\"x\",le=\"0.5\"} 1\na_seconds_bucket{call=\"x\",le=\"2\"} 3\n"
            "a_seconds_bucket{call=\"x\",le=\"+Inf\"} 4\n");
}

TEST(MetricLabels, EscapesWhatWouldEndAValue) {
  EXPECT_EQ(MetricLabels({{"name", "a \"b\" \\ c\nd"}}).text(), R"(name="a \"b\" \\ c\nd")");
}

TEST(MetricLabels, KeepsCharactersOfOtherScripts) {
  EXPECT_EQ(MetricLabels({{"name", "größe 日本"}}).text(), "name=\"größe 日本\"");
}

TEST(MetricLabels, ReplacesBytesThatAreNoTextSoThatThePageIsRead) {
  EXPECT_EQ(MetricLabels({{"name", "a\xff\xc3z"}}).text(), "name=\"a\xEF\xBF\xBD\xEF\xBF\xBDz\"");
  EXPECT_EQ(MetricLabels({{"name", std::string_view("\0\r\x7f", 3)}}).text(),
            "name=\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
}

TEST(MetricLabels, AddToACopyAndLeaveTheOriginal) {
  const MetricLabels labels{{"a", "1"}};
  EXPECT_EQ(labels.with("b", "2").text(), R"(a="1",b="2")");
  EXPECT_EQ(labels.text(), R"(a="1")");
}

}  // namespace
}  // namespace gpu_platform::api
