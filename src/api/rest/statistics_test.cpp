#include "api/rest/server_fixture_test.h"

// What the daemon counts of its own work, over the wire.

namespace gpu_platform::api {
namespace {

class StatisticsTest : public ServerTest {
 protected:
  std::string metrics() { return ask("GET", "/metrics").body; }
  bool has_line(const std::string& line) {
    return ("\n" + metrics()).find("\n" + line + "\n") != std::string::npos;
  }
};

TEST_F(StatisticsTest, AnswersAreCountedByCallAndStatus) {
  start();
  ask("GET", "/v1/version");
  ask("GET", "/v1/version");
  EXPECT_EQ(ask("GET", "/v1/jobs/77").status, 404);
  EXPECT_EQ(ask("GET", "/nowhere").status, 404);
  EXPECT_TRUE(has_line(
      R"(gpu_platform_api_answers_total{call="ClusterService.GetVersion",status="200"} 2)"));
  EXPECT_TRUE(
      has_line(R"(gpu_platform_api_answers_total{call="JobService.GetJob",status="404"} 1)"));
  EXPECT_TRUE(has_line(R"(gpu_platform_api_answers_total{call="",status="404"} 1)"));
  const auto calls = parsed(ask("GET", "/v1/statistics"))["calls"];
  const auto find = [&](const std::string& name) {
    return *std::ranges::find_if(calls, [&](const auto& call) { return call["call"] == name; });
  };
  EXPECT_EQ(find("ClusterService.GetVersion")["count"], 2);
  EXPECT_EQ(find("ClusterService.GetVersion")["failed"], 0);
  EXPECT_EQ(find("JobService.GetJob")["failed"], 1);
}

TEST_F(StatisticsTest, WorkOfTheSchedulerIsTold) {
  core_.statistics = [] {
    controller::Statistics statistics;
    statistics.since = base::Instant(1'000'000'000);
    for (const double seconds : {0.25, 0.75}) statistics.cycle_seconds.add(seconds);
    statistics.considered.add(40);
    statistics.jobs_submitted = 7;
    statistics.attempts_started = 5;
    statistics.backfilled = 2;
    statistics.preemptions = {1, 2, 3};
    statistics.wait_seconds.add(30);
    return statistics;
  };
  core_.records_since = base::Instant(5'000'000'000);
  start();
  const auto told = parsed(ask("GET", "/v1/statistics"));
  EXPECT_EQ(told["records_since"], "1970-01-01T00:00:05.000Z");
  EXPECT_EQ(told["since"], "1970-01-01T00:00:01.000Z");
  EXPECT_EQ(told["cycle_seconds"],
            (nlohmann::json{{"count", 2}, {"last", 0.75}, {"mean", 0.5}, {"max", 0.75}}));
  EXPECT_EQ(told["considered_jobs"]["last"], 40);
  EXPECT_EQ(told["jobs_submitted"], 7);
  EXPECT_EQ(told["preemptions"], 6);
  EXPECT_TRUE(has_line(R"(gpu_platform_cycle_seconds_bucket{le="0.25"} 1)"));
  EXPECT_TRUE(has_line(R"(gpu_platform_cycle_seconds_bucket{le="+Inf"} 2)"));
  EXPECT_TRUE(has_line("gpu_platform_cycle_seconds_sum 1"));
  EXPECT_TRUE(has_line(R"(gpu_platform_attempts_started_total{how="in_order"} 3)"));
  EXPECT_TRUE(has_line(R"(gpu_platform_attempts_started_total{how="backfill"} 2)"));
  EXPECT_TRUE(has_line(R"(gpu_platform_preemptions_total{rule="overdue"} 3)"));
  EXPECT_TRUE(has_line(R"(gpu_platform_job_wait_seconds_bucket{le="60"} 1)"));
}

TEST_F(StatisticsTest, ReadingsOfGpusHaveTheNamesAndUnitsOfDcgm) {
  model::GpuReading reading;
  reading.utilization_percent = 97;
  reading.memory_used = base::kGiB;
  reading.power = base::Milliwatts(412'500);
  core_.readings.set("GPU-3", reading);
  model::GpuReading lost;
  lost.problem = "GPU is lost";
  lost.utilization_percent = 50;
  core_.readings.set("GPU-4", lost);
  start();
  const RawResponse page = ask("GET", "/metrics");
  EXPECT_EQ(page.status, 200);
  EXPECT_TRUE(page.headers.at("content-type").starts_with("text/plain; version=0.0.4"));
  const auto line_of = [&](const std::string& name) {
    const std::size_t begin = page.body.find("\n" + name + "{");
    return begin == std::string::npos
               ? std::string()
               : page.body.substr(begin + 1, page.body.find('\n', begin + 1) - begin - 1);
  };
  EXPECT_NE(line_of("DCGM_FI_DEV_GPU_UTIL").find(R"(gpu="3",UUID="GPU-3")"), std::string::npos)
      << line_of("DCGM_FI_DEV_GPU_UTIL");
  EXPECT_TRUE(line_of("DCGM_FI_DEV_GPU_UTIL").ends_with("} 97"));
  EXPECT_TRUE(line_of("DCGM_FI_DEV_FB_USED").ends_with("} 1024"));
  EXPECT_TRUE(line_of("DCGM_FI_DEV_POWER_USAGE").ends_with("} 412.5"));
  EXPECT_EQ(line_of("DCGM_FI_DEV_GPU_TEMP"), "") << "the driver said nothing of it";
  EXPECT_EQ(page.body.find(R"(DCGM_FI_DEV_GPU_UTIL{gpu="4")"), std::string::npos)
      << "it does not answer";
  EXPECT_TRUE(has_line(R"(gpu_platform_gpus{state="available",type="H100-80GB"} 8)")) << page.body;
}

TEST_F(StatisticsTest, XidsAreCountedByGpuAndNumberAlsoOfAGpuThatDoesNotAnswer) {
  model::GpuReading lost;
  lost.problem = "GPU is lost";
  lost.xids = {{79, base::Instant(2)}, {13, base::Instant(1)}};
  lost.xid_counts = {{13, 4}, {79, 1}};
  core_.readings.set("GPU-4", lost);
  start();
  const std::string page = metrics();
  const auto has_value = [&](std::string_view name, std::string_view end) {
    for (std::size_t at = page.find(name); at != std::string::npos; at = page.find(name, at + 1)) {
      const std::string line = page.substr(at, page.find('\n', at) - at);
      if (line.find("GPU-4") != std::string::npos && line.ends_with(end)) return true;
    }
    return false;
  };
  EXPECT_TRUE(has_value("gpu_platform_gpu_xids_total", R"(xid="13"} 4)")) << page;
  EXPECT_TRUE(has_value("gpu_platform_gpu_xids_total", R"(xid="79"} 1)")) << page;
  EXPECT_TRUE(has_value("DCGM_FI_DEV_XID_ERRORS", "} 79")) << page;
}

TEST_F(StatisticsTest, GpusAreCountedByStateAndByThePartyThatKeepsThem) {
  core_.edit_node([](model::Node& node) {
    node.gpus[2].state = model::GpuState::kDegraded;
    model::set_taint(node.gpus[2].taints, {model::TaintSource::kHealth,
                                           model::TaintEffect::kDegraded,
                                           "XID 13 in two jobs",
                                           "node",
                                           {}});
  });
  start();
  EXPECT_TRUE(has_line(R"(gpu_platform_gpus{state="degraded",type="H100-80GB"} 1)"));
  EXPECT_TRUE(has_line(R"(gpu_platform_gpus_kept_from_work{party="health"} 1)"));
}

TEST_F(StatisticsTest, ThePageNamesNoWaitingJobAndNoUserOfOne) {
  core_.add_job("someone-unlikely", 4711, "a-secret-name");
  start();
  EXPECT_EQ(metrics().find("someone-unlikely"), std::string::npos);
  EXPECT_EQ(metrics().find("a-secret-name"), std::string::npos);
}

}  // namespace
}  // namespace gpu_platform::api
