#include "cli/screen/watch_past.h"

#include <gtest/gtest.h>

#include "base/utc.h"

namespace gpu_platform::cli {
namespace {

base::Instant past_at(std::int64_t seconds) {
  return *base::parse_rfc3339("2026-07-01T12:00:00Z") + base::seconds(seconds);
}

v1::History past_of(double step_seconds, std::initializer_list<double> means) {
  v1::History history;
  v1::HistorySeries& series = *history.add_series();
  series.set_node("dgx-1");
  series.set_index(3);
  series.set_metric("utilization_percent");
  series.set_step_seconds(step_seconds);
  double begin = static_cast<double>(past_at(0).unix_ns()) / 1e9;
  for (const double mean : means) {
    series.mutable_points()->add_at(begin);
    series.mutable_points()->add_mean(mean);
    begin += step_seconds;
  }
  return history;
}

TEST(WatchPast, DrawsTheLastTenMinutes) {
  WatchPast past;
  EXPECT_EQ(past.line("dgx-1:3", past_at(600), 10, true), "") << "nothing is known";
  past.take(past_of(60, {0, 0, 0, 0, 0, 100, 100, 100, 100, 100}));
  EXPECT_EQ(past.line("dgx-1:3", past_at(600), 10, true), ".....#####");
  EXPECT_EQ(past.line("dgx-1:3", past_at(900), 10, true), "#####     ") << "time goes on";
  EXPECT_EQ(past.line("dgx-1:4", past_at(600), 10, true), "");
}

TEST(WatchPast, AddsValuesToTheHistory) {
  WatchPast past;
  past.take(past_of(60, {0, 0, 0, 0, 0}));
  for (int second = 305; second <= 600; second += 5) past.add("dgx-1:3", past_at(second), 100);
  EXPECT_EQ(past.line("dgx-1:3", past_at(600), 10, true), ".....#####");
}

TEST(WatchPast, JoinsValuesOfOneMoment) {
  WatchPast past;
  for (int second = 0; second <= 600; ++second)
    past.add("a:0", past_at(second), second % 2 * 100.0);
  const auto points = past.points_of({"a:0"});
  EXPECT_LE(points.size(), 160U) << "not one for each second";
  EXPECT_GE(points.size(), 100U);
  for (std::size_t i = 1; i < points.size(); ++i) EXPECT_EQ(points[i].from, points[i - 1].to);
  EXPECT_EQ(points.back().to, past_at(600));
}

TEST(WatchPast, ForgetsWhatIsOlder) {
  WatchPast past;
  for (int second = 0; second <= 3600; second += 10) past.add("a:0", past_at(second), 50);
  EXPECT_GE(past.points_of({"a:0"}).front().to, past_at(3000));
}

TEST(WatchPast, LeavesGapsAndOldValuesOut) {
  WatchPast past;
  past.add("a:0", past_at(0), 100);
  past.add("a:0", past_at(300), 100);
  past.add("a:0", past_at(290), 0);
  EXPECT_EQ(past.points_of({"a:0"}).size(), 2U) << "a value that comes late says nothing new";
  EXPECT_EQ(past.line("a:0", past_at(300), 10, true), "    #    #")
      << "a value stands for no more than a minute";
  past.add("a:0", past_at(100), 40);
  ASSERT_EQ(past.points_of({"a:0"}).size(), 1U) << "the clock was set back";
  EXPECT_EQ(past.points_of({"a:0"})[0].value, 40);
}

TEST(WatchPast, HasThePointsOfSeveralGpus) {
  WatchPast past;
  past.add("a:0", past_at(0), 100);
  past.add("a:1", past_at(0), 0);
  EXPECT_EQ(past.points_of({"a:0", "a:1", "a:2"}).size(), 2U);
}

}  // namespace
}  // namespace gpu_platform::cli
