#include <sstream>

#include "cli/commands/show_fixture.h"
#include "cli/text/text.h"

namespace gpu_platform::cli {
namespace {

using Request = FakeServer::Request;

constexpr std::string_view kStatus =
    R"({"total_gpus":8,"available_gpus":6,"utilization":0.25,"queued_jobs":3,"running_jobs":1,"held_jobs":0,"suspended_jobs":0,)"
    R"("nodes":[{"name":"dgx-1","state":"UP","emulated":true,"cpus":112,"cpus_allocated":28,"memory_bytes":2199023255552,"memory_allocated_bytes":549755813888,"total_gpus":8,"available_gpus":6,"driver_version":"535.1","reason":null,"engine":"process","capacity":"ON_DEMAND"}],)"
    R"("gpus":[{"node":"dgx-1","index":0,"uuid":"GPU-1","type":"H100-80GB","state":"IN_USE","emulated":true,"jobs":["7"],"memory_total_bytes":85899345920,"memory_used_bytes":1073741824,"utilization_percent":93.4,"temperature_c":61,"power_watts":null,"reason":null}]})";

TEST_F(Show, StatusHasTotalsAndOneRowForEachNode) {
  FakeServer server([](const Request&) { return json_answer(kStatus); });
  EXPECT_EQ(call(server, {"status"}), 0);
  EXPECT_EQ(out(),
            fmt::format("server unix:{}\n"
                        "8 GPUs (emulated), 6 available, 25 % allocated\n"
                        "1 job running, 3 queued, 0 held, 0 suspended; none of them yours\n\n"
                        "NODE   STATE  GPUS  FREE  CPUS USED    MEMORY USED  DRIVER  REASON\n"
                        "dgx-1  UP        8     6     28/112  512 GiB/2 TiB  535.1   -\n",
                        server.path()));
}

TEST_F(Show, StatusHasTheMeasuredUseOfTheGpusIfAnyIsRead) {
  FakeServer server([](const Request&) {
    return json_answer(
        R"({"total_gpus":8,"available_gpus":6,"utilization":0.25,"gpu_utilization":0.125,"nodes":[],"gpus":[]})");
  });
  EXPECT_EQ(call(server, {"status"}), 0);
  EXPECT_TRUE(has(out(), "6 available, 25 % allocated, 12 % used\n")) << out();
}

TEST_F(Show, StatusCountsOnesOwnJobsAndGpusThatAreNotWell) {
  FakeServer server([](const Request& request) {
    if (has(request.target, "/v1/jobs")) {
      return json_answer(
          R"({"jobs":[{"state":"RUNNING"},{"state":"QUEUED"},{"state":"HELD"},{"state":"RUNNING"}]})");
    }
    return json_answer(
        R"({"total_gpus":3,"nodes":[],"gpus":[{"state":"OFFLINE"},{"state":"DRAINING"},{"state":"IN_USE","reason":"does not answer"}]})");
  });
  EXPECT_EQ(call(server, {"status"}), 0);
  EXPECT_TRUE(has(out(), "; yours: 2 running, 2 waiting\n")) << out();
  EXPECT_TRUE(has(out(),
                  "1 GPU out of service, 1 GPU draining, 1 GPU with a problem: gpu-platform "
                  "health\n"))
      << out();
}

TEST_F(Show, StatusCountsGpusThatAreDegradedOrBeingReset) {
  FakeServer server([](const Request&) {
    return json_answer(
        R"({"total_gpus":3,"nodes":[],"gpus":[{"state":"DEGRADED"},{"state":"RESETTING"},{"state":"DEGRADED"}]})");
  });
  EXPECT_EQ(call(server, {"status"}), 0);
  EXPECT_TRUE(has(out(), "1 GPU being reset, 2 GPUs degraded: gpu-platform health\n")) << out();
}

TEST_F(Show, AWideStatusNamesTheEngineAndTheCapacityOfEachNode) {
  FakeServer server([](const Request&) { return json_answer(kStatus); });
  EXPECT_EQ(call(server, {"status", "-o", "wide"}), 0);
  EXPECT_TRUE(has(out(), "DRIVER  ENGINE   CAPACITY   REASON\n")) << out();
  EXPECT_TRUE(has(out(), "535.1   process  on-demand  -\n")) << out();
}

TEST_F(Show, StatusNamesTheGuardsThatAreNotHeld) {
  FakeServer server([](const Request&) {
    return json_answer(
        R"({"nodes":[],"gpus":[],"isolation":[{"guard":"user","held":true,"reason":null},)"
        R"({"guard":"devices","held":false,"reason":"no"},{"guard":"cpu","held":false,"reason":"no"}]})");
  });
  EXPECT_EQ(call(server, {"status"}), 0);
  EXPECT_TRUE(has(out(), "isolation is advisory for: devices, cpu\n")) << out();
}

TEST_F(Show, StatusAllHasOneRowForEachGpuAndAbsentReadingsAreNotZero) {
  FakeServer server([](const Request&) { return json_answer(kStatus); });
  EXPECT_EQ(call(server, {"status", "--all"}), 0);
  EXPECT_TRUE(has(out(),
                  "dgx-1    0  H100-80GB  IN_USE  7     1 GiB/80 GiB  93 %  61 °C      -  -       "
                  "GPU-1\n"))
      << out();
}

TEST_F(Show, StatusAllNamesTheJobsAsListsDo) {
  FakeServer server([](const Request& request) {
    return json_answer(
        has(request.target, "/v1/jobs?all")
            ? R"({"jobs":[{"id":"7","array_id":"4","array_index":3,"spec":{"user":"ada"}}]})"
            : std::string(kStatus));
  });
  EXPECT_EQ(call(server, {"status", "--all"}), 0);
  EXPECT_TRUE(has(out(), "IN_USE  4_3 ada  ")) << out();
}

TEST_F(Show, StatusAllFitsTheTerminalAndStillSaysWhatIsEmulated) {
  around_.width = 80;
  FakeServer server([](const Request&) { return json_answer(kStatus); });
  EXPECT_EQ(call(server, {"status", "--all"}), 0);
  EXPECT_TRUE(has(out(), "\n8 GPUs (emulated), ")) << out();
  std::istringstream lines(out());
  std::string line;
  std::getline(lines, line);  // the path of the server is as long as it is
  while (std::getline(lines, line)) EXPECT_LE(display_width(line), 80U) << line;
}

TEST_F(Show, StatusShowsNodesAsPeopleCountThem) {
  FakeServer server([](const Request&) {
    return json_answer(R"({"nodes":[{"name":"n10"},{"name":"n2"},{"name":"m1"}],"gpus":[]})");
  });
  EXPECT_EQ(call(server, {"status"}), 0);
  const std::string text = out();
  EXPECT_LT(text.find("m1 "), text.find("n2 ")) << text;
  EXPECT_LT(text.find("n2 "), text.find("n10 ")) << text;
}

TEST_F(Show, QueueNumbersTheJobsAndSaysHowManyMoreThereAre) {
  FakeServer server([](const Request&) {
    return json_answer(
        R"({"jobs":[{"id":"5","queue_position":1,"state":"QUEUED","spec":{"name":"a","user":"ada","priority":"LOW","gpus":1},"submitted_at":"2026-07-01T12:03:02Z","wait_reason":{"text":"2 jobs ahead"}}],"total":3})");
  });
  EXPECT_EQ(call(server, {"queue", "--limit", "1"}), 0);
  EXPECT_TRUE(
      has(out(), "       1   5  a     ada   QUEUED  LOW          1     10s  2 jobs ahead\n"))
      << out();
  EXPECT_TRUE(has(err(), "2 more wait"));
  EXPECT_EQ(server.requests()[0], "GET /v1/queue?all=true&limit=1");
}

TEST_F(Show, QueueFoldsMembersOfAnArrayAndCountsHiddenJobs) {
  const auto member = [](int index, int position) {
    return fmt::format(
        R"({{"id":"{}","array_id":"15","array_index":{},"queue_position":{},"state":"QUEUED","wait_reason":{{"code":"PRIORITY","text":"jobs ahead"}},"spec":{{"name":"sweep","user":"ada","gpus":1}}}})",
        15 + index, index, position);
  };
  FakeServer server([&](const Request&) {
    return json_answer(
        fmt::format(R"({{"jobs":[{},{}],"total":2,"hidden":3}})", member(2, 4), member(3, 5)));
  });
  EXPECT_EQ(call(server, {"queue"}), 0);
  EXPECT_TRUE(has(out(), "     4-5  15_[2-3]  sweep")) << out();
  EXPECT_TRUE(has(err(), "3 waiting jobs of other users are not shown")) << err();
  for (const std::size_t width : {80, 120, 160}) {
    around_.width = width;
    const std::size_t before = out().size();
    EXPECT_EQ(call(server, {"queue", "--eta"}), 0);
    std::istringstream lines(out().substr(before));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), width);
    EXPECT_TRUE(has(out().substr(before), "15_[2-3]")) << out();
  }
  around_.width = 0;
  EXPECT_EQ(call(server, {"queue", "--expand"}), 0);
  EXPECT_TRUE(has(out(), "5  15_3  sweep")) << out();
}

TEST_F(Show, QueueShowsTheFirstAndTheLastStartOfAnArray) {
  around_.now = [] { return *base::parse_rfc3339("2026-07-01T12:00:00Z"); };
  FakeServer server([](const Request&) {
    return json_answer(
        R"({"jobs":[{"id":"17","array_id":"15","array_index":2,"queue_position":4,"state":"QUEUED","estimated_start":"2026-07-01T12:12:00Z","start_guaranteed":true},{"id":"18","array_id":"15","array_index":3,"queue_position":5,"state":"QUEUED","estimated_start":"2026-07-01T12:20:00Z","estimated_start_trust":{"p90":"2026-07-01T12:40:00Z"}}],"total":2})");
  });
  EXPECT_EQ(call(server, {"queue", "--eta"}), 0);
  EXPECT_TRUE(has(out(), "15_[2-3]") && has(out(), "~12m00s to 40m00s")) << out();
}

TEST_F(Show, QueueSaysWhenJobsStartWhereAsked) {
  FakeServer server([](const Request&) {
    return json_answer(
        R"({"jobs":[{"id":"5","queue_position":1,"estimated_start":"2099-07-01T12:03:02Z","start_guaranteed":true},{"id":"8","queue_position":4,"estimated_start":"2099-07-01T12:03:02Z"},{"id":"6","queue_position":2,"estimated_start":"2001-07-01T12:03:02Z"},{"id":"7","queue_position":3}],"total":3})");
  });
  EXPECT_EQ(call(server, {"queue", "--eta"}), 0);
  EXPECT_TRUE(has(out(), "STARTS WITHIN")) << out();
  EXPECT_TRUE(has(out(), "d") && has(out(), "a moment") && has(out(), "?")) << out();
  EXPECT_TRUE(has(out(), " ~")) << "job 8 may start later: " << out();
  EXPECT_EQ(server.requests()[0], "GET /v1/queue?all=true&limit=10000&eta=true");
}

}  // namespace
}  // namespace gpu_platform::cli
