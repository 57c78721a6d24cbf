#include "api/telemetry_calls.h"

#include <limits>

#include <gtest/gtest.h>

#include "api/call_context.h"
#include "api/convert/job.h"
#include "api/fake_core_test.h"
#include "api/fake_history_test.h"
#include "api/peers_test.h"
#include "api/reading_hub.h"
#include "telemetry/attribution.h"
#include "telemetry/metric.h"

namespace gpu_platform::api {
namespace {

using base::ErrorCode;
using telemetry::Of;
using telemetry::Point;

// A full minute, after the begin of the fake core's jobs.
constexpr base::Instant kFrom{1'750'003'620'000'000'000};

base::Instant at_second(std::int64_t seconds) {
  return kFrom + base::seconds(seconds);
}

// A span of that many seconds behind the begin with two readings.
Point span(std::int64_t seconds, std::int64_t least, std::int64_t most) {
  return {at_second(seconds), least, most, least + most, 2};
}

telemetry::Subject gpu(std::string uuid) {
  return {.of = Of::kGpu, .uuid = std::move(uuid)};
}

class TelemetryCallsTest : public testing::Test {
 protected:
  // Of two minutes in steps of one.
  static v1::QueryHistoryRequest window() {
    v1::QueryHistoryRequest request;
    to_proto(at_second(0), *request.mutable_from());
    to_proto(at_second(120), *request.mutable_to());
    request.set_step_seconds(60);
    return request;
  }
  static v1::QueryHistoryRequest of_gpu(std::string place, std::string metric) {
    v1::QueryHistoryRequest request = window();
    request.add_gpu(std::move(place));
    request.add_metric(std::move(metric));
    return request;
  }
  v1::History ask(const v1::QueryHistoryRequest& request, const Peer& peer = kAda) {
    auto answer = calls_.history(request, peer);
    EXPECT_TRUE(answer.has_value()) << answer.error().message;
    return std::move(answer).value_or(v1::History());
  }
  base::Error refused(const v1::QueryHistoryRequest& request, const Peer& peer = kAda) {
    const auto answer = calls_.history(request, peer);
    EXPECT_FALSE(answer.has_value());
    return answer ? base::Error() : answer.error();
  }

  FakeHistory history_;
  ReadingHub hub_{1000};
  FakeCore core_;
  CoreAccess access_ = [this] {
    core_.history = &history_;
    core_.reading_hub = &hub_;
    return core_.access();
  }();
  CallContext context_{access_, {.version = "1.2.3"}};
  TelemetryCalls calls_{context_};
};

TEST_F(TelemetryCallsTest, AnswerWithThePointsOfAGpuAndWhatTheyAreTogether) {
  telemetry::Series& kept =
      history_.put(gpu("GPU-3"), "utilization_percent", {span(0, 10, 30), span(60, 50, 90)});
  kept.spread.emplace();
  for (const std::int64_t value : {10, 30, 50, 90}) kept.spread->add(value);
  history_.known.raw_since = at_second(-100);
  history_.known.problem = "the disk is full";
  v1::QueryHistoryRequest request = of_gpu("dgx-h100-1:3", "utilization");
  request.add_percentile(100);
  const v1::History answer = ask(request);
  ASSERT_EQ(answer.series_size(), 1);
  const v1::HistorySeries& series = answer.series(0);
  EXPECT_EQ(series.node(), "dgx-h100-1");
  EXPECT_EQ(series.index(), 3U);
  EXPECT_EQ(series.gpu_id(), "GPU-3");
  EXPECT_FALSE(series.has_job());
  EXPECT_EQ(series.metric(), "utilization_percent");
  EXPECT_EQ(series.unit(), "percent");
  EXPECT_EQ(series.step_seconds(), 60);
  ASSERT_EQ(series.points().at_size(), 2);
  EXPECT_EQ(series.points().at(1), 1'750'003'680.0);
  EXPECT_EQ(series.points().min(0), 10);
  EXPECT_EQ(series.points().mean(1), 70);
  EXPECT_EQ(series.points().max(1), 90);
  EXPECT_EQ(series.points().count(0), 2U);
  EXPECT_EQ(series.points().growth_size(), 0);
  EXPECT_EQ(series.window().min(), 10);
  EXPECT_EQ(series.window().mean(), 45);
  EXPECT_EQ(series.window().max(), 90);
  EXPECT_EQ(series.window().count(), 4U);
  ASSERT_EQ(series.window().percentiles_size(), 1);
  EXPECT_NEAR(series.window().percentiles(0).value(), 90, 90.0 / 16);
  EXPECT_TRUE(answer.coverage().has_samples_since());
  EXPECT_FALSE(answer.coverage().has_minutes_since());
  EXPECT_EQ(answer.coverage().problem(), "the disk is full");
}

TEST_F(TelemetryCallsTest, ShowPowerInWattsWithTheEnergyThatTheGpuCounted) {
  history_.put(gpu("GPU-0"), "power_watts", {span(0, 300'000, 500'000)});
  // From 7 MJ on by 24 kJ.
  history_.put(gpu("GPU-0"), "energy_mj",
               {{at_second(0), 7'000'000'000, 7'024'000'000, 24'000'000, 2}});
  const v1::History answer = ask(of_gpu("dgx-h100-1:0", "power"));
  ASSERT_EQ(answer.series_size(), 1) << "the energy was not asked for";
  EXPECT_EQ(answer.series(0).unit(), "watts");
  EXPECT_DOUBLE_EQ(answer.series(0).points().mean(0), 400);
  EXPECT_DOUBLE_EQ(answer.series(0).window().energy_joules(), 24'000);
  const v1::History energy = ask(of_gpu("dgx-h100-1:0", "energy_mj"));
  EXPECT_TRUE(energy.series(0).counter());
  EXPECT_DOUBLE_EQ(energy.series(0).points().growth(0), 24'000'000);
  EXPECT_EQ(energy.series(0).points().mean_size(), 0);
  EXPECT_FALSE(energy.series(0).window().has_mean());
}

TEST_F(TelemetryCallsTest, AreOfAGpuThatIsGoneOnlyIfSomethingWasReadOfIt) {
  history_.put(gpu("GPU-old"), "utilization_percent", {span(0, 1, 2)});
  v1::QueryHistoryRequest request = window();
  request.add_gpu_id("GPU-old");
  const v1::History answer = ask(request);
  EXPECT_EQ(answer.series(0).gpu_id(), "GPU-old");
  EXPECT_FALSE(answer.series(0).has_node());
  request.add_gpu_id("GPU-never");
  EXPECT_EQ(refused(request).code, ErrorCode::kNotFound);
}

TEST_F(TelemetryCallsTest, AnswerForANodeWithItsHostAndItsGpus) {
  history_.put({.of = Of::kHost, .node = "dgx-h100-1"}, "cpu_percent", {span(0, 20, 40)});
  v1::QueryHistoryRequest request = window();
  request.add_node("dgx-h100-1");
  const v1::History answer = ask(request);
  // Two metrics of the host, four of each of its eight GPUs.
  ASSERT_EQ(answer.series_size(), 34);
  EXPECT_EQ(answer.series(0).metric(), "cpu_percent");
  EXPECT_EQ(answer.series(0).points().mean(0), 30);
  EXPECT_FALSE(answer.series(0).has_gpu_id());
  EXPECT_FALSE(answer.series(1).window().has_mean()) << "nothing was read, which is not 0";
  request.set_node(0, "elsewhere");
  EXPECT_EQ(refused(request).field, "node");
}

TEST_F(TelemetryCallsTest, ShowAJobToThoseAloneWhoMaySeeIt) {
  const model::JobId job = core_.add_job("ada", 1000);
  core_.start_job(job, {2});
  history_.put(gpu("GPU-2"), "utilization_percent", {span(0, 60, 80)});
  v1::QueryHistoryRequest request = window();
  request.set_job(std::to_string(job.value));
  request.add_metric("utilization");
  const v1::History answer = ask(request);
  ASSERT_EQ(answer.series_size(), 1);
  EXPECT_EQ(answer.series(0).job(), std::to_string(job.value));
  EXPECT_EQ(answer.series(0).attempt(), 1U);
  EXPECT_EQ(answer.series(0).index(), 2U);
  EXPECT_FALSE(answer.series(0).shared());
  EXPECT_EQ(answer.series(0).points().mean(0), 70);
  const base::Error hidden = refused(request, kBob);
  EXPECT_EQ(hidden.code, ErrorCode::kNotFound);
  request.set_job("4711");
  EXPECT_EQ(refused(request, kBob).code, hidden.code);
}

TEST_F(TelemetryCallsTest, AskOfAJobNoMoreThanTheTimeInWhichItHadItsGpus) {
  const model::JobId job = core_.add_job("ada", 1000);
  core_.start_job(job, {2});
  core_.end_job(job, 0);
  v1::QueryHistoryRequest request;
  request.set_job(std::to_string(job.value));
  request.add_metric("utilization");
  EXPECT_EQ(ask(request).series_size(), 1);
  ASSERT_EQ(history_.queries().size(), 1U);
  const auto archived = core_.find(job);
  ASSERT_TRUE(archived.has_value() && archived->has_value());
  const model::Attempt& attempt = (*archived)->attempts.front();
  EXPECT_EQ(history_.queries()[0].from, attempt.started_at);
  EXPECT_EQ(history_.queries()[0].to, attempt.ended_at);
  to_proto(at_second(0), *request.mutable_from());
  to_proto(at_second(60), *request.mutable_to());
  EXPECT_EQ(ask(request).series_size(), 0) << "it had ended before";
}

TEST_F(TelemetryCallsTest, ShowOfASharedGpuTheJobsOwnPartAndTheWholeWhileItWasAlone) {
  const model::JobId job = core_.add_job("ada", 1000);
  core_.start_job(job, {2}, base::GpuShare(3500));
  history_.put(gpu("GPU-2"), "utilization_percent", {span(0, 10, 20), span(60, 90, 100)});
  history_.put({.of = Of::kUse, .uuid = "GPU-2", .attempt = {job, 1}}, "utilization_percent",
               {span(60, 30, 40)});
  v1::QueryHistoryRequest request = window();
  request.set_job(std::to_string(job.value));
  request.add_metric("utilization");
  const v1::History answer = ask(request);
  ASSERT_EQ(answer.series_size(), 1);
  EXPECT_TRUE(answer.series(0).shared());
  ASSERT_EQ(answer.series(0).points().at_size(), 2);
  EXPECT_EQ(answer.series(0).points().mean(0), 15) << "alone";
  EXPECT_EQ(answer.series(0).points().mean(1), 35) << "its own part";
}

TEST_F(TelemetryCallsTest, AddUpTheJobsOfATeamThatTheCallerMaySee) {
  core_.start_job(core_.add_job_of_team("ada", 1000, "ml"), {0});
  core_.start_job(core_.add_job_of_team("ada", 1000, "ml"), {1}, base::GpuShare(3500));
  core_.start_job(core_.add_job_of_team("bob", 1001, "ml"), {2});
  core_.start_job(core_.add_job_of_team("ada", 1000, "vision"), {3});
  history_.put(gpu("GPU-0"), "utilization_percent", {span(0, 80, 100)});
  history_.put(gpu("GPU-1"), "utilization_percent", {span(0, 10, 30)});
  history_.put(gpu("GPU-2"), "utilization_percent", {span(0, 0, 0)});
  v1::QueryHistoryRequest request = window();
  request.set_team("ml");
  const v1::History own = ask(request);
  ASSERT_EQ(own.series_size(), 2);
  EXPECT_EQ(own.series(0).team(), "ml");
  EXPECT_EQ(own.series(0).metric(), "gpus_allocated");
  ASSERT_EQ(own.series(0).points().at_size(), 2);
  EXPECT_DOUBLE_EQ(own.series(0).points().mean(0), 1.5);
  EXPECT_DOUBLE_EQ(own.series(0).window().mean(), 1.5);
  EXPECT_EQ(own.series(1).metric(), "utilization_percent");
  ASSERT_EQ(own.series(1).points().at_size(), 1);
  EXPECT_DOUBLE_EQ(own.series(1).points().mean(0), 55);
  EXPECT_EQ(own.series(1).points().min(0), 10);
  EXPECT_EQ(own.series(1).points().max(0), 100);
  const v1::History all = ask(request, kRoot);
  EXPECT_DOUBLE_EQ(all.series(0).window().mean(), 2.5);
  EXPECT_DOUBLE_EQ(all.series(1).points().mean(0), 220.0 / 6);
}

TEST_F(TelemetryCallsTest, SayWhatIsWrongWithAWindow) {
  const auto with = [](base::Instant from, base::Instant to) {
    v1::QueryHistoryRequest request = of_gpu("dgx-h100-1:0", "power");
    to_proto(from, *request.mutable_from());
    to_proto(to, *request.mutable_to());
    return request;
  };
  EXPECT_EQ(refused(with(at_second(60), at_second(0))).field, "from");
  EXPECT_EQ(refused(with(at_second(60), at_second(60))).field, "from");
  const base::Instant far{9'000'000'000'000'000'000};
  const base::Error future = refused(with(far, far + base::hours(1)));
  EXPECT_EQ(future.field, "from");
  EXPECT_NE(future.message.find("future"), std::string::npos);
  EXPECT_NE(refused(with(base::Instant(1), far)).message.find("ten years"), std::string::npos);
  // An end in the future is now.
  v1::QueryHistoryRequest open = with(at_second(0), far);
  open.set_step_seconds(86'400);
  EXPECT_LT(to_model(ask(open).to()), far);
}

TEST_F(TelemetryCallsTest, SayWhatIsWrongWithOtherFields) {
  EXPECT_EQ(refused(window()).field, "gpu") << "nothing is asked for";
  v1::QueryHistoryRequest two = of_gpu("dgx-h100-1:0", "power");
  two.set_team("ml");
  EXPECT_EQ(refused(two).field, "gpu");
  EXPECT_EQ(refused(of_gpu("dgx-h100-1", "power")).field, "gpu");
  EXPECT_EQ(refused(of_gpu("dgx-h100-1:8", "power")).code, ErrorCode::kNotFound);
  const base::Error unknown = refused(of_gpu("dgx-h100-1:0", "temprature"));
  EXPECT_EQ(unknown.field, "metric");
  const base::Error mistyped = refused(of_gpu("dgx-h100-1:0", "utilisation"));
  EXPECT_NE(mistyped.message.find("'utilization'"), std::string::npos) << mistyped.message;
  EXPECT_EQ(refused(of_gpu("dgx-h100-1:0", "cpu_percent")).field, "metric");
  EXPECT_EQ(refused(of_gpu("dgx-h100-1:0", "gpus_allocated")).field, "metric");
  v1::QueryHistoryRequest step = of_gpu("dgx-h100-1:0", "power");
  step.set_window_seconds(60);
  EXPECT_EQ(refused(step).field, "window_seconds") << "it is the same as the step";
  step.clear_step_seconds();
  step.set_window_seconds(0.5);
  EXPECT_EQ(refused(step).field, "window_seconds");
  for (const double bad : {0.0, -1.0, 100.5, std::numeric_limits<double>::quiet_NaN()}) {
    v1::QueryHistoryRequest request = of_gpu("dgx-h100-1:0", "power");
    request.add_percentile(bad);
    EXPECT_EQ(refused(request).field, "percentile") << bad;
  }
  v1::QueryHistoryRequest counter = window();
  counter.set_team("ml");
  counter.add_metric("energy_mj");
  EXPECT_EQ(refused(counter).field, "metric") << "a sum of counters tells nothing";
}

TEST_F(TelemetryCallsTest, RefuseAnAnswerThatIsTooLargeAndSayWhichStepIsNot) {
  v1::QueryHistoryRequest request = of_gpu("dgx-h100-1:0", "power");
  to_proto(at_second(-300 * 86'400), *request.mutable_from());
  request.set_step_seconds(0);
  const base::Error error = refused(request);
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(error.field, "step_seconds");
  EXPECT_NE(error.message.find("step_seconds=300 "), std::string::npos) << error.message;
  request.set_step_seconds(300);
  EXPECT_EQ(ask(request).step_seconds(), 300);
  // Without a step it is as coarse as it must be.
  request.clear_step_seconds();
  EXPECT_EQ(ask(request).step_seconds(), 21'600);
}

TEST_F(TelemetryCallsTest, AreUnavailableWhereNothingIsKeptOrRead) {
  CoreAccess access = core_.access();
  access.history = nullptr;
  access.reading_hub = nullptr;
  const CallContext context(access, {.version = "1.2.3"});
  const TelemetryCalls calls(context);
  const auto history = calls.history(of_gpu("dgx-h100-1:0", "power"), kAda);
  ASSERT_FALSE(history.has_value());
  EXPECT_EQ(history.error().code, ErrorCode::kUnavailable);
  const auto readings = calls.readings({}, kAda);
  ASSERT_FALSE(readings.has_value());
  EXPECT_EQ(readings.error().code, ErrorCode::kUnavailable);
}

// ---- readings

telemetry::Frame frame(telemetry::Subject subject, std::string_view metric, std::int64_t value) {
  const telemetry::MetricId id = *telemetry::metric_named(subject.of, metric);
  return {std::move(subject), at_second(0), {{id, value}}};
}

TEST_F(TelemetryCallsTest, ListTheLatestReadingsThatTheCallerMaySee) {
  const std::string node = "dgx-h100-1";
  const model::JobId job = core_.add_job("ada", 1000);
  core_.start_job(job, {1}, base::GpuShare(3500));
  hub_.take(std::make_shared<const std::vector<telemetry::Frame>>(std::vector<telemetry::Frame>{
      frame({.of = Of::kGpu, .node = node, .uuid = "GPU-0"}, "power_watts", 250'500),
      frame({.of = Of::kGpu, .node = node, .uuid = "GPU-1"}, "utilization_percent", 90),
      frame({.of = Of::kUse, .node = node, .uuid = "GPU-1", .attempt = {job, 1}},
            "utilization_percent", 40),
      frame({.of = Of::kHost, .node = node}, "cpu_percent", 7)}));
  const auto own = calls_.readings({}, kAda);
  ASSERT_TRUE(own.has_value());
  ASSERT_EQ(own->readings_size(), 4);
  EXPECT_EQ(own->readings(0).index(), 0U);
  EXPECT_DOUBLE_EQ(own->readings(0).values().at("power_watts"), 250.5);
  EXPECT_EQ(own->readings(3).job(), std::to_string(job.value));
  const auto others = calls_.readings({}, kBob);
  ASSERT_TRUE(others.has_value());
  ASSERT_EQ(others->readings_size(), 3);
  for (const v1::Reading& reading : others->readings()) EXPECT_FALSE(reading.has_job());

  v1::ListReadingsRequest of_job;
  of_job.add_job(std::to_string(job.value));
  const auto part = calls_.readings(of_job, kAda);
  ASSERT_TRUE(part.has_value());
  ASSERT_EQ(part->readings_size(), 1) << "its part, and not the whole GPU";
  EXPECT_EQ(part->readings(0).values().at("utilization_percent"), 40);
  EXPECT_EQ(calls_.readings(of_job, kBob).error().code, ErrorCode::kNotFound);

  v1::ListReadingsRequest page;
  page.add_node(node);
  page.set_limit(3);
  const auto first = calls_.readings(page, kAda);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->readings_size(), 3);
  page.set_page_token(first->next_page());
  const auto second = calls_.readings(page, kAda);
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->readings_size(), 1);
  EXPECT_FALSE(second->has_next_page());
}

TEST_F(TelemetryCallsTest, SayInAWordHowAPartWasFound) {
  const model::JobId job = core_.add_job("ada", 1000);
  core_.start_job(job, {1}, base::GpuShare(3500));
  const telemetry::Subject part{Of::kUse, "dgx-h100-1", "GPU-1", {job, 1}};
  telemetry::Frame turns = frame(part, "utilization_percent", 40);
  turns.values.push_back({*telemetry::metric_named(Of::kUse, telemetry::kUseAttributedBy),
                          static_cast<std::int64_t>(telemetry::AttributedBy::kTurns)});
  hub_.take(
      std::make_shared<const std::vector<telemetry::Frame>>(std::vector<telemetry::Frame>{turns}));
  const auto found = calls_.readings({}, kAda);
  ASSERT_TRUE(found.has_value());
  ASSERT_EQ(found->readings_size(), 1);
  EXPECT_EQ(found->readings(0).attributed_by(), "TURNS");
  EXPECT_FALSE(found->readings(0).values().contains("attributed_by"));
}

}  // namespace
}  // namespace gpu_platform::api
