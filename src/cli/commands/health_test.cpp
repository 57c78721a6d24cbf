#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "cli/commands/show_fixture.h"
#include "cli/text/health_story.h"
#include "cli/text/json_view.h"

// health of one GPU as a story, health evidence, health report, reset, health check.

namespace gpu_platform::cli {
namespace {

using Request = FakeServer::Request;

// Out after XID 79 under ada's job, with a verdict, and ada's and bob's jobs in its evidence.
constexpr std::string_view kSick =
    R"({"gpu":{"node":"dgx-1","index":3,"uuid":"GPU-3","model":"NVIDIA H100 80GB HBM3","type":"H100-80GB","state":"OFFLINE","emulated":true,"jobs":[],"memory_total_bytes":85899345920,"reason":"XID 79: the GPU fell off the bus","changed_by":"node","changed_at":"2026-07-01T12:00:00Z"},)"
    R"("recovery_action":"NODE_REBOOT","processes":[{"pid":4711,"user":"bob","command":"secret-tool"}],)"
    R"("taints":[{"source":"OPERATOR","effect":"NO_NEW_WORK","text":"for bob's new disk","by":"carol","at":"2026-07-01T11:00:00Z"},{"source":"HEALTH","effect":"OUT","text":"XID 79: the GPU fell off the bus","by":"health","at":"2026-07-01T12:00:00Z"}],)"
    R"("verdict":{"action":"REBOOT","fault":"HARDWARE","confidence_percent":97,"text":"XID 79: the GPU fell off the bus","reasons":["XID 79 is a fault of the hardware, here in job 42 of ada"],"rule":"xid-79","next":"a reboot of node dgx-1","again_at":null},)"
    R"("evidence":[{"node":"dgx-1","gpu_id":"GPU-3","kind":"JOB_STARTED","source":"JOB","at":"2026-07-01T10:00:00Z","last":"2026-07-01T10:00:00Z","count":1,"code":0,"value":0,"is_over":false,"job":"42","user":"ada","program":"train.py"},)"
    R"({"node":"dgx-1","gpu_id":"GPU-3","kind":"ECC_UNCORRECTED","source":"READING","at":"2026-07-01T11:50:00Z","last":"2026-07-01T11:50:00Z","count":1,"code":0,"value":2,"is_over":false,"job":"42","user":"ada","program":"train.py"},)"
    R"({"node":"dgx-1","gpu_id":"GPU-3","kind":"XID","source":"DRIVER","at":"2026-07-01T12:00:00Z","last":"2026-07-01T12:00:04Z","count":12,"code":79,"value":0,"is_over":false,"job":"42","user":"ada","program":"train.py","pid":4242,"text":"GPU has fallen off the bus."},)"
    R"({"node":"dgx-1","gpu_id":"GPU-3","kind":"JOB_ENDED","source":"JOB","at":"2026-07-01T12:00:01Z","last":"2026-07-01T12:00:01Z","count":1,"code":137,"value":0,"is_over":false,"job":"42","user":"ada","program":"train.py","text":"ada's last words"}]})";

class Health : public Show {
 protected:
  // What was said on stdout since the last call of this.
  std::string new_out() {
    const std::string all = out();
    return all.substr(std::exchange(seen_, all.size()));
  }
  std::size_t seen_ = 0;
};

TEST_F(Health, OfOneIsTheWholeStory) {
  FakeServer server([](const Request&) { return json_answer(std::string(kSick)); });
  EXPECT_EQ(call(server, {"health", "dgx-1:3"}), 0) << err();
  EXPECT_EQ(server.requests()[0], "GET /v1/gpus/health?gpu=dgx-1%3A3");
  const std::string page = new_out();
  for (const std::string_view line :
       {"State:           OFFLINE\n", "\nKept from work by:\n", "  operator  no-new-work  ",
        "  health    out          2026-07-01 12:00  health  XID 79: the GPU fell off the bus\n",
        "\nVerdict: reboot, cause: hardware, 97 % sure that the GPU is at fault (rule xid-79)\n",
        "  - XID 79 is a fault of the hardware, here in job 42 of ada\n",
        "\nWhat brings it back:\n", "  - operator: 'gpu-platform online dgx-1:3'\n",
        "  - health: a reboot of node dgx-1\n", "\nEvidence:\n", "2 uncorrected ECC errors",
        "XID 79: GPU has fallen off the bus.", "\nJobs there:\n", "ended by signal 9\n",
        "Driver wants:    NODE_REBOOT\n"}) {
    EXPECT_TRUE(has(page, line)) << line << "\n" << page;
  }
  EXPECT_EQ(call(server, {"health", "dgx-1:3", "--json"}), 0);
  EXPECT_EQ(new_out(), std::string(kSick) + "\n");
}

TEST_F(Health, OfOneFitsANarrowTerminal) {
  FakeServer server([](const Request&) { return json_answer(std::string(kSick)); });
  around_.width = 80;
  EXPECT_EQ(call(server, {"health", "dgx-1:3"}), 0) << err();
  std::istringstream lines(new_out());
  bool is_in_story = false;
  for (std::string line; std::getline(lines, line);) {
    if (line == "Kept from work by:") is_in_story = true;
    if (line.starts_with("Memory:")) break;
    if (is_in_story) {
      EXPECT_LE(line.size(), 80U) << line;
    }
  }
  EXPECT_TRUE(is_in_story);
}

TEST_F(Health, OfAllSaysSinceWhenWhyAndWhatIsNext) {
  FakeServer server(
      [](const Request&) { return json_answer(fmt::format(R"({{"gpus":[{}]}})", kSick)); });
  EXPECT_EQ(call(server, {"health"}), 0);
  const std::string text = new_out();
  EXPECT_TRUE(has(text, "OFFLINE  3m12s")) << text;
  EXPECT_TRUE(has(text, "XID 79: the GPU fell off the bus")) << text;
  EXPECT_TRUE(has(text, "; next: a reboot of node dgx-1\n")) << text;
}

TEST_F(Health, ShowsAConditionOfTheNodeThatOnlyCounts) {
  FakeServer server([](const Request&) {
    return json_answer(
        R"({"gpus":[{"gpu":{"node":"n","index":0,"state":"AVAILABLE"},"verdict":{"action":"COUNT","fault":"UNKNOWN","text":"its node: SomethingNew: Odd","rule":"condition-unknown"}},)"
        R"({"gpu":{"node":"n","index":1,"state":"AVAILABLE"},"verdict":{"action":"COUNT","fault":"APPLICATION","text":"XID 31","rule":"xid-31"}}]})");
  });
  EXPECT_EQ(call(server, {"health"}), 0);
  const std::string text = new_out();
  EXPECT_TRUE(has(text, "2 GPUs, 1 with something wrong\n")) << text;
  EXPECT_TRUE(has(text, "its node: SomethingNew: Odd\n")) << text;
}

TEST_F(Health, SaysWhatIsNotDoneAndWhy) {
  FakeServer server([](const Request& request) {
    const std::string_view health =
        R"x({"gpu":{"node":"dgx-1","index":0,"state":"AVAILABLE"},"verdict":{"action":"DRAIN","fault":"HARDWARE","text":"XID 48"},"withheld":"XID 48 (not done: health.mode is shadow)"})x";
    return json_answer(begins(request.target, "/v1/gpus/health")
                           ? std::string(health)
                           : fmt::format(R"({{"gpus":[{}]}})", health));
  });
  EXPECT_EQ(call(server, {"health"}), 0);
  EXPECT_TRUE(has(new_out(), "XID 48 (not done: health.mode is shadow)\n")) << out();
  EXPECT_EQ(call(server, {"health", "dgx-1:0"}), 0);
  EXPECT_TRUE(has(new_out(), "  ! XID 48 (not done: health.mode is shadow)\n")) << out();
}

TEST_F(Health, WordsOfEvidenceFitTheirKinds) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {R"({"kind":"XID","code":13})", "XID 13"},
      {R"({"kind":"ECC_CORRECTED","value":1})", "1 corrected ECC error"},
      {R"({"kind":"HEAT","value":91})", "hot: 91 °C"},
      {R"({"kind":"HEAT","value":91,"is_over":true})", "over: hot: 91 °C"},
      {R"({"kind":"CHECK","code":1,"text":"NVLink 3"})", "the check failed: NVLink 3"},
      {R"({"kind":"CHECK","code":2,"text":"add \"allow check\""})",
       "no check is allowed: add \"allow check\""},
      {R"({"kind":"CHECK","code":3})", "the check could not begin"},
      {R"({"kind":"RESET","code":3,"text":"it is in use"})",
       "the reset could not begin: it is in use"},
      {R"({"kind":"RESET"})", "reset"},
      {R"({"kind":"RECOVERY_ACTION","code":1})", "the driver asks for a reset"},
      {R"({"kind":"JOB_ENDED","code":1})", "a job ended with exit code 1"},
      {R"({"kind":"OF_A_LATER_VERSION"})", "OF_A_LATER_VERSION"},
  };
  for (const auto& [document, text] : cases) {
    EXPECT_EQ(evidence_text(*client::message_of<v1::Evidence>(document)), text);
  }
}

// ---- health evidence

TEST_F(Health, EvidenceIsOneEventALine) {
  FakeServer server([](const Request& request) {
    if (begins(request.target, "/v1/status")) {
      return json_answer(
          R"({"gpus":[{"node":"dgx-1","uuid":"GPU-3","type":"H100-80GB"},{"node":"dgx-1","uuid":"GPU-4","type":"H100-80GB"}]})");
    }
    const Json document = *parse_object(kSick);
    return json_answer(json_text(Json{{"evidence", document["evidence"]}, {"next_page", nullptr}}));
  });
  EXPECT_EQ(call(server, {"health", "evidence", "dgx-1", "--since", "2026-07-01T10:00:00Z"}), 0)
      << err();
  EXPECT_EQ(server.requests()[0],
            "GET /v1/gpus/evidence?node=dgx-1&since=2026-07-01T10:00:00.000Z");
  std::istringstream lines(new_out());
  std::vector<Json> events;
  for (std::string line; std::getline(lines, line);) events.push_back(Json::parse(line));
  ASSERT_EQ(events.size(), 5U);
  EXPECT_EQ(events[0], (Json{{"at", "2026-07-01T10:00:00.000Z"},
                             {"kind", "inventory"},
                             {"gpu_type", "H100-80GB"},
                             {"gpus", 2},
                             {"nodes", 1}}));
  EXPECT_EQ(events[3], (Json{{"at", "2026-07-01T12:00:00.000Z"},
                             {"kind", "xid"},
                             {"node", "dgx-1"},
                             {"gpu", "GPU-3"},
                             {"gpu_type", "H100-80GB"},
                             {"xid", 79},
                             {"count", 12},
                             {"last", "2026-07-01T12:00:04.000Z"},
                             {"job", "42"},
                             {"user", "ada"},
                             {"program", "train.py"},
                             {"pid", 4242},
                             {"source", "driver"},
                             {"text", "GPU has fallen off the bus."}}));
  EXPECT_EQ(events[4]["code"], 137);
  EXPECT_EQ(events[1].contains("code"), false);
}

// ---- health report

class HealthReport : public Health {
 protected:
  HealthReport()
      : server_([](const Request& request) {
          if (begins(request.target, "/v1/version")) return json_answer(R"({"version":"0.1.0"})");
          if (begins(request.target, "/v1/nodes")) {
            return json_answer(
                R"({"nodes":[{"name":"dgx-1","driver_version":"575.57.08"},{"name":"dgx-2"}]})");
          }
          if (begins(request.target, "/v1/configuration")) {
            return json_answer(
                R"({"values":[{"key":"health.profile","value":"nvidia"},{"key":"api.x","value":"y"}]})");
          }
          if (begins(request.target, "/v1/gpus/evidence")) {
            const Json document = *parse_object(kSick);
            return json_answer(json_text(Json{{"evidence", document["evidence"]}}));
          }
          return json_answer(std::string(kSick));
        }) {}
  FakeServer server_;
};

TEST_F(HealthReport, HasTheFactsAndNothingOfUsers) {
  EXPECT_EQ(call(server_, {"health", "report", "--gpu", "dgx-1:3"}), 0) << err();
  const std::string text = new_out();
  const Json report = Json::parse(text);
  EXPECT_EQ(report["form"], "gpu-platform health report 1");
  EXPECT_EQ(report["daemon"]["version"], "0.1.0");
  EXPECT_EQ(report["settings"].size(), 1U);
  ASSERT_EQ(report["nodes"].size(), 1U);
  EXPECT_EQ(report["nodes"][0]["driver_version"], "575.57.08");
  ASSERT_EQ(report["gpus"].size(), 1U);
  EXPECT_EQ(report["gpus"][0]["verdict"]["rule"], "xid-79");
  EXPECT_EQ(report["evidence"].size(), 4U);
  EXPECT_EQ(report["evidence"][2]["text"], "GPU has fallen off the bus.");
  EXPECT_EQ(report["gpus"][0]["verdict"]["reasons"][0],
            "XID 79 is a fault of the hardware, here in job 42 of (removed)");
  for (const std::string_view secret : {"ada", "bob", "carol", "train.py", "secret-tool", "disk"}) {
    EXPECT_FALSE(has(text, secret)) << secret << text;
  }
}

TEST_F(HealthReport, GoesIntoAFile) {
  const std::string path =
      fmt::format("{}/report-{}.json", std::filesystem::temp_directory_path().string(), ::getpid());
  EXPECT_EQ(call(server_, {"health", "report", "dgx-1:3", "--output-file", path}), 0) << err();
  EXPECT_EQ(new_out(), "");
  EXPECT_TRUE(has(err(), "1 GPU, 4 pieces of evidence")) << err();
  std::ifstream file(path);
  EXPECT_EQ(Json::parse(file)["form"], "gpu-platform health report 1");
  std::filesystem::remove(path);
  EXPECT_NE(call(server_, {"health", "report", "--output-file", "/no-such-folder/x"}), 0);
}

// ---- reset

constexpr std::string_view kOrdered =
    R"({"gpus":[{"node":"dgx-1","index":3,"uuid":"GPU-3","type":"H100-80GB","state":"DRAINING","emulated":true,"jobs":["42"],"reason":"waits to be reset"}],"changed":true})";

TEST_F(Health, ResetOrdersEachOfTheGpus) {
  std::vector<Json> sent;
  FakeServer server([&](const Request& request) {
    if (request.method == "GET") return json_answer("{}");  // what a job is called
    EXPECT_EQ(request.target, "/v1/gpus/reset");
    sent.push_back(Json::parse(request.body));
    return json_answer(std::string(kOrdered));
  });
  EXPECT_EQ(call(server, {"reset", "dgx-1:3", "--reason", "rows wait"}), 0) << err();
  EXPECT_TRUE(has(err(), "1 job still holds them; the reset follows when it has ended")) << err();
  EXPECT_EQ(call(server, {"reset", "GPU-3", "dgx-1:4", "--yes", "--when-empty"}), 0) << err();
  EXPECT_EQ(call(server, {"reset", "--node", "dgx-1", "--yes", "--force"}), 0) << err();
  EXPECT_EQ(sent, (std::vector<Json>{Json{{"gpu", "dgx-1:3"}, {"reason", "rows wait"}},
                                     Json{{"gpu_id", "GPU-3"}, {"when_empty", true}},
                                     Json{{"gpu", "dgx-1:4"}, {"when_empty", true}},
                                     Json{{"node", "dgx-1"}, {"force", true}}}));
}

TEST_F(Health, ResetOfANodeIsAskedAboutOrNeedsYes) {
  around_.in_fd = interrupts_[0];  // no terminal
  EXPECT_EQ(call({"reset", "dgx-1"}), 2);
  EXPECT_TRUE(has(err(), "use --yes")) << err();
  EXPECT_EQ(call({"reset"}), 2);
  EXPECT_TRUE(has(err(), "give the GPUs or nodes as words")) << err();
  EXPECT_EQ(call({"reset", "dgx-1:3", "--gpu-id", "GPU-4"}), 2);
  EXPECT_EQ(call({"reset", "dgx-1:x"}), 2);
  EXPECT_TRUE(has(err(), "'dgx-1:x' is not NODE:INDEX")) << err();
}

TEST_F(Health, ResetWaitsUntilTheGpuIsBackOrIsNot) {
  std::string state = "AVAILABLE";
  int looks = 0;
  FakeServer server([&](const Request& request) {
    if (request.method == "POST") return json_answer(std::string(kOrdered));
    if (begins(request.target, "/v1/jobs/")) return json_answer("{}");
    if (++looks % 3 != 0) {
      return json_answer(
          R"({"gpu":{"node":"dgx-1","index":3,"state":"RESETTING"},"taints":[{"source":"RESET"}]})");
    }
    return json_answer(fmt::format(
        R"({{"gpu":{{"node":"dgx-1","index":3,"state":"{}","reason":"the check failed"}}}})",
        state));
  });
  EXPECT_EQ(call(server, {"reset", "dgx-1:3", "--wait"}), 0) << err();
  EXPECT_TRUE(has(err(), "GPU dgx-1:3 is back in service")) << err();
  EXPECT_EQ(pauses_, 2);
  state = "DRAINING";
  EXPECT_EQ(call(server, {"reset", "dgx-1:3", "--wait"}), 1);
  EXPECT_TRUE(has(err(), "GPU dgx-1:3 is DRAINING: the check failed")) << err();
  EXPECT_EQ(call(server, {"reset", "dgx-1:3", "--wait", "--timeout", "1s"}), 124) << err();
  EXPECT_TRUE(has(err(), "1 GPU is not reset yet; the order stays")) << err();
}

// ---- health check

TEST_F(Health, CheckThatTheRulesDoNotAllowIsToldAndIsAFailure) {
  FakeServer server([&](const Request& request) {
    if (request.method == "POST") return json_answer(std::string(kOrdered));
    if (begins(request.target, "/v1/jobs/")) return json_answer("{}");
    return json_answer(R"({"gpu":{"node":"dgx-1","index":3,"state":"AVAILABLE"},"evidence":[)"
                       R"({"kind":"CHECK","code":2,"text":"root writes the rules"}]})");
  });
  EXPECT_EQ(call(server, {"health", "check", "dgx-1:3", "--wait"}), 1);
  EXPECT_TRUE(has(err(), "GPU dgx-1:3 was not checked: root writes the rules")) << err();
}

TEST_F(Health, CheckOrdersEachOfTheGpusAndWaits) {
  std::vector<Json> sent;
  FakeServer server([&](const Request& request) {
    if (request.method == "POST") {
      EXPECT_EQ(request.target, "/v1/gpus/check");
      sent.push_back(Json::parse(request.body));
      return json_answer(std::string(kOrdered));
    }
    if (begins(request.target, "/v1/jobs/")) return json_answer("{}");
    return json_answer(R"({"gpu":{"node":"dgx-1","index":3,"state":"AVAILABLE"}})");
  });
  EXPECT_EQ(call(server, {"health", "check", "dgx-1:3", "--deep", "--wait"}), 0) << err();
  EXPECT_TRUE(has(err(), "1 job still holds them; the check follows when it has ended")) << err();
  EXPECT_TRUE(has(err(), "GPU dgx-1:3 is back in service")) << err();
  EXPECT_EQ(call(server, {"health", "check", "GPU-3"}), 0) << err();
  ASSERT_EQ(sent.size(), 2U);
  EXPECT_EQ(sent[0], (Json{{"gpu", "dgx-1:3"}, {"when_empty", true}, {"deep", true}}));
  EXPECT_EQ(sent[1], (Json{{"gpu_id", "GPU-3"}}));
  EXPECT_EQ(call({"reset", "dgx-1:3", "--deep"}), 2);
}

}  // namespace
}  // namespace gpu_platform::cli
