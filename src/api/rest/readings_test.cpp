#include "api/fake_history_test.h"
#include "api/reading_hub.h"
#include "api/rest/server_fixture_test.h"
#include "api/rest/sse_reader_test.h"

// The history and live readings over the wire.

namespace gpu_platform::api {
namespace {

using telemetry::Frame;
using telemetry::Of;

constexpr std::string_view kNode = "dgx-h100-1";

class ReadingsTest : public ServerTest {
 protected:
  ReadingsTest() {
    core_.history = &history_;
    core_.reading_hub = &hub_;
  }

  void read(telemetry::Subject subject, std::int64_t utilization) {
    subject.node = kNode;
    const auto metric = *telemetry::metric_named(subject.of, "utilization_percent");
    hub_.take(std::make_shared<const std::vector<Frame>>(std::vector{
        Frame{std::move(subject), base::Instant(1) + base::hours(1), {{metric, utilization}}}}));
  }
  void read_gpu(std::string uuid, std::int64_t utilization) {
    read({.of = Of::kGpu, .uuid = std::move(uuid)}, utilization);
  }
  void read_use(model::JobId job, std::int64_t utilization) {
    read({.of = Of::kUse, .uuid = "GPU-1", .attempt = {job, 1}}, utilization);
  }
  SseReader follow(std::string_view filter = {}, std::string_view headers = {}) {
    return SseReader(options_.socket_path, fmt::format("/v1/readings?follow=true{}", filter),
                     headers);
  }
  static int utilization_in(const std::optional<SseEvent>& event) {
    if (!event || event->data["change"] != "READING") return -1;
    return event->data["reading"]["values"].value("utilization_percent", -1);
  }

  FakeHistory history_;
  ReadingHub hub_{1000, {.values = 20}};
};

TEST_F(ReadingsTest, BeginWithTheLatestAndGoOnAsTheyCome) {
  read_gpu("GPU-0", 10);
  read_gpu("GPU-0", 20);
  start();
  SseReader stream = follow();
  const auto first = stream.next();
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->name, "reading");
  EXPECT_EQ(first->id, "1002");
  EXPECT_EQ(first->data["seq"], 1002);
  EXPECT_EQ(first->data["reading"]["node"], kNode);
  EXPECT_EQ(first->data["reading"]["index"], 0);
  EXPECT_EQ(first->data["reading"]["job"], nullptr);
  EXPECT_EQ(utilization_in(first), 20);
  read_gpu("GPU-3", 30);
  EXPECT_EQ(utilization_in(stream.next()), 30);
}

TEST_F(ReadingsTest, AreOfSeveralThingsOnOneConnection) {
  for (int i = 0; i < 4; ++i) read_gpu(fmt::format("GPU-{}", i), i);
  start();
  SseReader stream = follow("&gpu=dgx-h100-1%3A3&gpu_id=GPU-1");
  EXPECT_EQ(utilization_in(stream.next()), 1);
  EXPECT_EQ(utilization_in(stream.next()), 3);
  read_gpu("GPU-2", 50);
  read_gpu("GPU-3", 60);
  EXPECT_EQ(utilization_in(stream.next()), 60);
}

TEST_F(ReadingsTest, ResumeWithAllThatWasMissed) {
  for (const int value : {10, 20, 30}) read_gpu("GPU-0", value);
  start();
  SseReader stream = follow({}, "Last-Event-ID: 1001\r\n");
  EXPECT_EQ(utilization_in(stream.next()), 20);
  EXPECT_EQ(utilization_in(stream.next()), 30);
}

TEST_F(ReadingsTest, SayThatTheyBeginAnewWhenTheyHaveForgottenTheClientsPlace) {
  // The ring holds ten.
  for (int i = 0; i < 12; ++i) read_gpu("GPU-0", i);
  start();
  for (const std::string_view place : {"1001", "7", "99999"}) {
    SseReader stream = follow({}, fmt::format("Last-Event-ID: {}\r\n", place));
    const auto reset = stream.next();
    ASSERT_TRUE(reset.has_value()) << place;
    EXPECT_EQ(reset->data["change"], "RESET");
    EXPECT_EQ(reset->data["reading"], nullptr);
    EXPECT_EQ(utilization_in(stream.next()), 11);
  }
}

TEST_F(ReadingsTest, NeverNameAJobThatTheCallerMayNotSee) {
  const model::JobId own = core_.add_job(user_, uid_);
  const model::JobId hidden = core_.add_job("eve", uid_ + 1);
  read_use(hidden, 70);
  start();
  if (uid_ == 0) GTEST_SKIP() << "root sees every job";
  EXPECT_EQ(parsed(ask("GET", "/v1/readings"))["readings"].size(), 0U);
  SseReader stream = follow();
  read_use(hidden, 80);
  read_use(own, 40);
  const auto event = stream.next();
  EXPECT_EQ(utilization_in(event), 40);
  EXPECT_EQ(event->data["reading"]["job"], std::to_string(own.value));
  EXPECT_EQ(ask("GET", fmt::format("/v1/readings?follow=true&job={}", hidden.value)).status, 404);
  EXPECT_EQ(ask("GET", fmt::format("/v1/readings?job={}", hidden.value)).status, 404);
}

TEST_F(ReadingsTest, OfJobsEndWithTheirLast) {
  const model::JobId job = core_.add_job(user_, uid_);
  core_.start_job(job, {2});
  read_gpu("GPU-2", 50);
  read_gpu("GPU-3", 60);
  start();
  SseReader stream = follow(fmt::format("&job={}", job.value));
  EXPECT_EQ(utilization_in(stream.next()), 50);
  core_.end_job(job, 0);
  EXPECT_TRUE(stream.is_at_end());
}

TEST_F(ReadingsTest, RefuseWhatIsNotThere) {
  start();
  EXPECT_EQ(ask("GET", "/v1/readings?follow=true&node=elsewhere").status, 404);
  EXPECT_EQ(ask("GET", "/v1/readings?gpu_id=GPU-99").status, 404);
  EXPECT_EQ(ask("GET", "/v1/readings?follow=true", {}, "Last-Event-ID: x\r\n").status, 400);
}

TEST_F(ReadingsTest, OfThePastAreAnsweredAsCompactLists) {
  const base::Instant begin{1'750'003'620'000'000'000};
  history_.put({.of = Of::kGpu, .uuid = "GPU-3"}, "temperature_c", {{begin, 60, 64, 124, 2}});
  start();
  const std::string target =
      "/v1/history?gpu=dgx-h100-1%3A3&metric=temperature&from=2025-06-15T16:07:00Z"
      "&to=2025-06-15T16:08:00Z&step_seconds=60&percentile=50&percentile=99";
  const RawResponse response = ask("GET", target);
  ASSERT_EQ(response.status, 200) << response.body;
  const auto series = parsed(response)["series"];
  ASSERT_EQ(series.size(), 1U);
  EXPECT_EQ(series[0]["unit"], "celsius");
  EXPECT_EQ(series[0]["points"]["at"], nlohmann::json::parse("[1750003620]"));
  EXPECT_EQ(series[0]["points"]["mean"], nlohmann::json::parse("[62]"));
  EXPECT_EQ(series[0]["window"]["max"], 64);
  EXPECT_EQ(series[0]["team"], nullptr);
  const RawResponse wrong = ask(
      "GET", "/v1/history?gpu=dgx-h100-1%3A3&from=2025-06-15T16:07:00Z&to=2025-06-15T16:06:00Z");
  EXPECT_EQ(wrong.status, 400);
  EXPECT_EQ(parsed(wrong)["field"], "from");
}

}  // namespace
}  // namespace gpu_platform::api
