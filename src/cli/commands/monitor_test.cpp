#include <string>

#include "cli/commands/show_fixture.h"
#include "cli/text/json_view.h"

// `monitor` of jobs and `jobs efficiency`, before a daemon that a test plays.

namespace gpu_platform::cli {
namespace {

using Request = FakeServer::Request;

constexpr std::string_view kUse =
    R"({"id":"7","attempts":[{"attempt":1,"duration_seconds":45.2,"interval_seconds":1,"over":true,"gpus":[{"node":"n1","index":0,"model":"NVIDIA A100-SXM4-80GB","samples":45,"expected_samples":45,"utilization_percent":{"min":78,"max":95,"mean":87.3,"samples":45,"deviation":4}}]}]})";

constexpr std::string_view kEnded =
    R"({"id":"7","state":"COMPLETED","cpus":4,"memory_bytes":1073741824,"gpus":[{"node":"n1","index":0},{"node":"n1","index":1}],"gpu_use":{"utilization_percent":87.4,"memory_percent":45.2,"peak_memory_bytes":1073741824,"memory_bytes":536870912,"energy_joules":12300,"samples":9},"efficiency":{"cpu":0.5,"memory":0.25,"time":0.1},"spec":{"name":"train","user":"bob","gpus":2,"time_limit_seconds":3600}})";

using MonitorCommand = Show;

TEST_F(MonitorCommand, ShowsWhatAJobDidOnItsGpus) {
  std::string target;
  FakeServer server([&](const Request& request) {
    target = request.target;
    return json_answer(std::string(kUse));
  });
  EXPECT_EQ(call(server, {"monitor", "7"}), 0) << err();
  EXPECT_EQ(target, "/v1/jobs/7/use");
  EXPECT_TRUE(has(out(), "45.2 s, 45 readings, one each 1 s\n")) << out();
  EXPECT_TRUE(has(out(), "87.3 (78-95)")) << out();
  const std::size_t before = out().size();
  EXPECT_EQ(call(server, {"monitor", "7", "--json"}), 0) << err();
  const auto document = parse_object(out().substr(before));
  ASSERT_TRUE(document) << out();
  EXPECT_EQ((*document)["sample_count"], 45);
  EXPECT_EQ((*document)["gpu_stats"]["0"]["utilization"]["mean"], 87.3);
}

TEST_F(MonitorCommand, SaysThatNothingWasRead) {
  FakeServer server([](const Request&) { return json_answer(R"({"id":"7","attempts":[]})"); });
  EXPECT_NE(call(server, {"monitor", "7"}), 0);
  EXPECT_TRUE(has(err(), "nothing was read of GPUs of job 7")) << err();
}

TEST_F(MonitorCommand, FollowsAJobFromBeforeItsStartToItsEnd) {
  std::string state = "QUEUED";
  FakeServer server([&](const Request& request) {
    if (request.target == "/v1/jobs/7") {
      return json_answer(fmt::format(R"({{"id":"7","state":"{}"}})", state));
    }
    return json_answer(state == "QUEUED" ? R"({"id":"7","attempts":[]})" : std::string(kUse));
  });
  on_pause_ = [&] { state = pauses_ == 1 ? "RUNNING" : "COMPLETED"; };
  EXPECT_EQ(call(server, {"monitor", "--follow", "7"}), 0) << err();
  EXPECT_EQ(pauses_, 2);
  EXPECT_TRUE(begins(out(), "nothing was read of its GPUs yet\n\n45.2 s, 45 readings")) << out();
  const std::size_t last = out().rfind("45.2 s, 45 readings");
  EXPECT_NE(last, out().find("45.2 s, 45 readings")) << "while it runs, and after its end";
}

TEST_F(MonitorCommand, FollowsNoJobThatHasEndedWithoutReadings) {
  FakeServer server([](const Request& request) {
    return json_answer(request.target == "/v1/jobs/7" ? R"({"id":"7","state":"CANCELLED"})"
                                                      : R"({"id":"7","attempts":[]})");
  });
  EXPECT_NE(call(server, {"monitor", "--follow", "7"}), 0);
  EXPECT_TRUE(has(err(), "nothing was read of GPUs of job 7")) << err();
  EXPECT_EQ(pauses_, 0);
}

TEST_F(MonitorCommand, WantsACommandBehindDashes) {
  FakeServer server([](const Request&) { return json_answer("{}"); });
  EXPECT_EQ(call(server, {"monitor", "train.py"}), 2);
  EXPECT_TRUE(has(err(), "gpu-platform monitor -- train.py")) << err();
  EXPECT_EQ(call(server, {"monitor"}), 2);
  EXPECT_EQ(call(server, {"monitor", "--gpus", "0", "7"}), 2);
  EXPECT_TRUE(has(err(), "--gpus: a job has its own GPUs")) << err();
  EXPECT_EQ(call(server, {"monitor", "--interval", "1ms", "7"}), 2);
  EXPECT_TRUE(has(err(), "is out of range: 100ms to 1h")) << err();
}

TEST_F(MonitorCommand, ComparesTwoJobs) {
  FakeServer server([](const Request&) { return json_answer(std::string(kUse)); });
  EXPECT_EQ(call(server, {"monitor", "diff", "7", "8"}), 0) << err();
  EXPECT_TRUE(has(out(), "utilization_percent")) << out();
  EXPECT_TRUE(has(out(), "within noise")) << out();
  EXPECT_NE(call(server, {"monitor", "diff", "7", "no-such-file"}), 0);
  EXPECT_TRUE(has(err(), "no-such-file: it cannot be read")) << err();
}

TEST_F(MonitorCommand, ComparesNothingThatIsNoDocument) {
  FakeServer server([](const Request&) {
    return json_answer(R"({"status":404,"code":"NOT_FOUND","detail":"there is no job 9"})", 404);
  });
  EXPECT_EQ(call(server, {"monitor", "diff", "9", "9"}), 3);
  EXPECT_TRUE(has(err(), "there is no job 9")) << err();
  EXPECT_EQ(call(server, {"monitor", "diff", "/", "9"}), 1) << "a folder";
  EXPECT_EQ(call(server, {"monitor", "diff", "/dev/null", "9"}), 1) << "an empty file";
  EXPECT_TRUE(has(err(), "/dev/null: it is no document of 'gpu-platform monitor'")) << err();
}

TEST_F(MonitorCommand, RunsNoCommandWhoseSummaryCannotBeWritten) {
  FakeServer server([](const Request&) { return json_answer("{}"); });
  EXPECT_EQ(call(server, {"monitor", "--output", "/nonexistent/run.json", "--", "/bin/true"}), 1);
  EXPECT_TRUE(has(err(), "--output: /nonexistent/run.json: it cannot be written")) << err();
  EXPECT_EQ(call(server, {"monitor", "--", ""}), 2);
}

TEST_F(MonitorCommand, EfficiencyIsWhatAJobUsedOfWhatItHeld) {
  FakeServer server([](const Request&) { return json_answer(std::string(kEnded)); });
  EXPECT_EQ(call(server, {"jobs", "efficiency", "7"}), 0) << err();
  EXPECT_TRUE(has(out(), "GPU:          87% of 2 GPUs\n")) << out();
  EXPECT_TRUE(has(out(), "GPU energy:   12.3 kJ\n")) << out();
  EXPECT_TRUE(has(out(), "CPU:          50% of 4 CPUs\n")) << out();
  EXPECT_FALSE(has(out(), "has not ended")) << out();
}

TEST_F(MonitorCommand, EfficiencyOfManyJobsIsAList) {
  std::string target;
  FakeServer server([&](const Request& request) {
    if (has(request.target, "/v1/jobs?")) target = request.target;
    return json_answer(R"({"jobs":[)" + std::string(kEnded) + "]}");
  });
  EXPECT_EQ(call(server, {"jobs", "efficiency", "--since", "7d"}), 0) << err();
  EXPECT_TRUE(has(target, "gpu_use=true")) << target;
  EXPECT_TRUE(has(target, "state=COMPLETED")) << target;
  EXPECT_TRUE(has(out(), "GPU MEM")) << out();
  EXPECT_TRUE(has(out(), "87%")) << out();
}

TEST_F(MonitorCommand, WideListHasTheUseOfGpus) {
  FakeServer server(
      [](const Request&) { return json_answer(R"({"jobs":[)" + std::string(kEnded) + "]}"); });
  EXPECT_EQ(call(server, {"jobs", "list", "-o", "wide"}), 0) << err();
  EXPECT_TRUE(has(out(), "GPU UTIL  GPU MEM")) << out();
  EXPECT_TRUE(has(out(), "87%")) << out();
  EXPECT_TRUE(has(out(), "45%")) << out();
}

}  // namespace
}  // namespace gpu_platform::cli
