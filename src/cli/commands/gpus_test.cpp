#include <sstream>

#include <gtest/gtest.h>

#include "cli/cli_fixture_test.h"
#include "cli/text/gpu_text.h"
#include "cli/text/json_view.h"

// drain, offline, online, health.

namespace gpu_platform::cli {
namespace {

using Request = FakeServer::Request;

constexpr std::string_view kDrained =
    R"({"gpus":[{"node":"dgx-1","index":3,"type":"H100-80GB","state":"DRAINING","emulated":true,"jobs":["42"],"reason":"a fan is loud"}],"changed":true})";

constexpr std::string_view kHealth =
    R"({"gpu":{"node":"dgx-1","index":3,"uuid":"GPU-3","model":"NVIDIA H100 80GB HBM3","type":"H100-80GB","state":"IN_USE","emulated":true,"jobs":["42"],"memory_total_bytes":85899345920,"memory_used_bytes":1073741824,"utilization_percent":93,"temperature_c":61,"power_watts":500.5,"numa_node":0,"reason":null,"unmanaged_processes":[{"pid":4711}]},)"
    R"("read_at":"2026-07-01T12:03:11Z","problem":null,"power_limit_watts":700,"clock_sm_mhz":1980,"ecc_corrected":3,"ecc_uncorrected":0,"remap_pending":false,"pcie_generation":5,"pcie_width":16,"pcie_sent_bytes_per_second":1048576,"pcie_replays":1,"recovery_action":"NONE","throttle_reasons":["POWER_CAP"],)"
    R"("processes":[{"pid":4242,"user":"ada","command":"python","memory_bytes":1073741824,"job":"42"},{"pid":4711,"user":"bob","command":"\u001b[2J","memory_bytes":null,"job":null}],)"
    R"("xids":[{"xid":79,"at":"2026-07-01T12:00:00Z"}]})";

class Gpus : public Cli {
 protected:
  // What was said on stdout since the last call of this.
  std::string new_out() {
    const std::string all = out();
    return all.substr(std::exchange(seen_, all.size()));
  }
  std::size_t seen_ = 0;
};

TEST_F(Gpus, AreChangedByEachOfTheirNames) {
  std::vector<Json> sent;
  FakeServer server([&](const Request& request) {
    if (request.method == "GET") return json_answer("{}");  // what a job is called
    sent.push_back(Json::parse(request.body));
    return json_answer(kDrained);
  });
  EXPECT_EQ(call(server, {"drain", "--gpu", "dgx-1:3", "--reason", "a fan is loud"}), 0);
  EXPECT_EQ(call(server, {"offline", "--gpu-id", "GPU-3", "--force"}), 0);
  EXPECT_EQ(call(server, {"online", "--node", "dgx-1"}), 0);
  const std::string name = "GET /v1/jobs/42?fields=id,array_id,array_index";
  EXPECT_EQ(server.requests(),
            (std::vector<std::string>{"POST /v1/gpus/drain", name, "POST /v1/gpus/offline", name,
                                      "POST /v1/gpus/online", name}));
  EXPECT_EQ(sent[0], (Json{{"gpu", "dgx-1:3"}, {"reason", "a fan is loud"}}));
  EXPECT_EQ(sent[1], (Json{{"gpu_id", "GPU-3"}, {"force", true}}));
  EXPECT_EQ(sent[2], (Json{{"node", "dgx-1"}}));
}

TEST_F(Gpus, MayComeBackByThemselves) {
  std::vector<Json> sent;
  FakeServer server([&](const Request& request) {
    if (request.method == "GET") return json_answer("{}");  // what a job is called
    sent.push_back(Json::parse(request.body));
    return json_answer(kDrained);
  });
  EXPECT_EQ(call(server, {"drain", "dgx-1", "--until", "2030-01-31T12:00:00Z"}), 0) << err();
  EXPECT_EQ(call(server, {"offline", "dgx-1:3", "--until", "2h"}), 0) << err();
  EXPECT_EQ(sent[0]["until"], "2030-01-31T12:00:00.000Z");
  EXPECT_EQ(sent[1]["until"], "2026-07-01T14:03:12.000Z");
}

TEST_F(Gpus, AreNamedWithoutAnOption) {
  std::vector<Json> sent;
  FakeServer server([&](const Request& request) {
    if (request.method == "GET") return json_answer("{}");  // what a job is called
    sent.push_back(Json::parse(request.body));
    return json_answer(kDrained);
  });
  EXPECT_EQ(call(server, {"drain", "dgx-1"}), 0);
  EXPECT_EQ(call(server, {"drain", "dgx-1:3", "--reason", "x"}), 0);
  EXPECT_EQ(call(server, {"drain", "GPU-3"}), 0);
  EXPECT_EQ(sent,
            (std::vector<Json>{Json{{"node", "dgx-1"}}, Json{{"gpu", "dgx-1:3"}, {"reason", "x"}},
                               Json{{"gpu_id", "GPU-3"}}}));
  EXPECT_EQ(call(server, {"drain", "dgx-1", "--node", "dgx-1"}), 2);
  EXPECT_EQ(call(server, {"drain"}), 2);
  EXPECT_EQ(sent.size(), 3U);
}

TEST_F(Gpus, ThatChangedAreShown) {
  FakeServer server([](const Request&) { return json_answer(kDrained); });
  EXPECT_EQ(call(server, {"drain", "--gpu", "dgx-1:3"}), 0);
  EXPECT_EQ(new_out(),
            "NODE   GPU  TYPE       STATE     JOBS  REASON\n"
            "dgx-1    3  H100-80GB  DRAINING  42    a fan is loud\n");
  EXPECT_EQ(err(), "gpu-platform: these GPUs are emulated\n");
  EXPECT_EQ(call(server, {"drain", "--gpu", "dgx-1:3", "--json"}), 0);
  EXPECT_EQ(new_out(), std::string(kDrained) + "\n");
}

TEST_F(Gpus, ThatWereSoAlreadyAreNoError) {
  FakeServer server([](const Request&) { return json_answer(R"({"gpus":[],"changed":false})"); });
  EXPECT_EQ(call(server, {"online", "--gpu", "dgx-1:3"}), 0);
  EXPECT_EQ(out(), "");
  EXPECT_TRUE(has(err(), "nothing changed: it is already in this state")) << err();
}

TEST_F(Gpus, ANodeWithoutAnyIsChangedToo) {
  FakeServer server([](const Request&) { return json_answer(R"({"gpus":[],"changed":true})"); });
  EXPECT_EQ(call(server, {"drain", "--node", "cpu-1"}), 0);
  EXPECT_TRUE(has(err(), "node cpu-1 is drained; it has no GPUs")) << err();
}

TEST_F(Gpus, OfNoSuchNameExitWith3AndRefusalsWith4) {
  FakeServer server([](const Request& request) {
    if (has(request.body, "elsewhere")) {
      return json_answer(
          R"({"status":404,"detail":"there is no node elsewhere","code":"NOT_FOUND","field":"node"})",
          404);
    }
    if (has(request.body, "GPU-403")) {
      return json_answer(
          R"({"status":403,"detail":"ask an administrator","code":"PERMISSION_DENIED"})", 403);
    }
    return json_answer(
        R"({"status":409,"detail":"GPU 3 of node dgx-1 is held by job 42: use force","code":"FAILED_PRECONDITION","field":"force"})",
        409);
  });
  EXPECT_EQ(call(server, {"drain", "--node", "elsewhere"}), 3);
  EXPECT_EQ(call(server, {"drain", "--gpu-id", "GPU-403"}), 4);
  EXPECT_EQ(call(server, {"offline", "--gpu", "dgx-1:3"}), 4);
  EXPECT_EQ(out(), "");
  EXPECT_TRUE(has(err(), "held by job 42")) << err();
}

TEST_F(Gpus, MustBeNamedOnceAndRight) {
  const std::pair<std::vector<std::string>, std::string_view> cases[] = {
      {{"drain"}, "give exactly one of NODE, NODE:INDEX, --gpu-id, --gpu and --node"},
      {{"offline", "--force"}, "give exactly one of"},
      {{"online", "--node", "a", "--gpu", "a:1"}, "give exactly one of"},
      {{"drain", "--gpu", "dgx-1"}, "--gpu: 'dgx-1' is not NODE:INDEX"},
      {{"drain", "--gpu", "dgx-1:x"}, "--gpu: 'dgx-1:x' is not NODE:INDEX"},
      {{"drain", "--node", ""}, "--node: is empty"},
      {{"drain", "--force", "--node", "a"}, "unknown option '--force'"},
      {{"drain", "--node", "a", "--reason", "\xff"}, "--reason: the text is not valid UTF-8"},
      {{"drain", "--node", "a", "--until", "soon"}, "--until: 'soon' is not a future time"},
      {{"online", "--node", "a", "--until", "2h"}, "unknown option '--until'"},
      {{"health", "--node", "a", "--gpu", "a:1"}, "give at most one of"},
  };
  std::size_t seen = 0;
  for (const auto& [words, said] : cases) {
    EXPECT_EQ(call(words), 2) << said;
    EXPECT_TRUE(has(err().substr(seen), said)) << err().substr(seen);
    seen = err().size();
  }
}

TEST_F(Gpus, HealthOfOneIsAllThatWasRead) {
  FakeServer server([](const Request&) { return json_answer(kHealth); });
  EXPECT_EQ(call(server, {"health", "--gpu", "dgx-1:3"}), 0);
  EXPECT_EQ(server.requests()[0], "GET /v1/gpus/health?gpu=dgx-1%3A3");
  const std::string page = new_out();
  for (const std::string_view line :
       {"GPU:             3 of dgx-1 (emulated)\n", "State:           IN_USE\n",
        "Memory:          1 GiB/80 GiB\n", "Power:           500 W of 700 W\n",
        "ECC errors:      3 corrected, 0 uncorrected\n", "Remap pending:   no\n",
        "PCIe:            generation 5, x16, 1 MiB/s sent, 1 replay\n",
        "   79  2026-07-01 12:00:00 +0000 (3m12s ago)\n"}) {
    EXPECT_TRUE(has(page, line)) << line << page;
  }
  EXPECT_TRUE(has(page, "4242  ada   python    1 GiB  42\n")) << page;
  EXPECT_TRUE(has(page, "4711  bob   ?[2J          -  none\n")) << page;
  EXPECT_FALSE(has(page, "Clock memory")) << "what was not read is not shown";
  EXPECT_EQ(call(server, {"health", "--gpu-id", "GPU-3", "--json"}), 0);
  EXPECT_EQ(new_out(), std::string(kHealth) + "\n");
}

TEST_F(Gpus, HealthOfAllHasWhatIsWrongFirst) {
  constexpr std::string_view kWell =
      R"({"gpu":{"node":"dgx-1","index":0,"type":"H100-80GB","state":"AVAILABLE","temperature_c":30,"reason":null},"ecc_uncorrected":0,"recovery_action":"NONE","throttle_reasons":["POWER_CAP"]})";
  FakeServer server([&](const Request&) {
    return json_answer(fmt::format(R"({{"gpus":[{},{}]}})", kWell, kHealth));
  });
  EXPECT_EQ(call(server, {"health"}), 0);
  EXPECT_EQ(server.requests()[0], "GET /v1/gpus");
  EXPECT_EQ(new_out(),
            "2 GPUs (1 emulated), 1 with something wrong\n\n"
            "NODE              GPU  TYPE       STATE   FOR  UTIL   TEMP  POWER  ECC  WRONG\n"
            "dgx-1 (emulated)    3  H100-80GB  IN_USE    -  93 %  61 °C  500 W    0  XID 79 3m12s "
            "ago; 1 process of no job\n");
  EXPECT_EQ(call(server, {"health", "--all"}), 0);
  EXPECT_EQ(server.requests()[1], "GET /v1/gpus");
  EXPECT_TRUE(has(new_out(),
                  "dgx-1               0  H100-80GB  AVAILABLE    -     -  30 °C      -    0  "
                  "-\n"))
      << out();
  EXPECT_EQ(call(server, {"health", "--node", "dgx-1"}), 0);
  EXPECT_EQ(server.requests()[2], "GET /v1/gpus?node=dgx-1");
}

TEST_F(Gpus, HealthIsOneLineWhereAllIsWell) {
  FakeServer server([&](const Request&) {
    return json_answer(R"({"gpus":[{"gpu":{"state":"AVAILABLE","emulated":true}}]})");
  });
  EXPECT_EQ(call(server, {"health"}), 0);
  EXPECT_EQ(new_out(), "1 GPU (emulated), nothing wrong\n");
}

TEST_F(Gpus, HealthFoldsTheGpusOfANodeWithTheSameTrouble) {
  FakeServer server([&](const Request&) {
    std::string gpus;
    for (int i = 0; i < 8; ++i) {
      gpus += fmt::format(
          R"({}{{"gpu":{{"node":"dgx-1","index":{},"type":"H100","state":"DRAINING","emulated":true,"reason":"node dgx-1 is DRAINING: a fan is loud and the whole rack smells of burnt dust"}}}})",
          i == 0 ? "" : ",", i);
    }
    return json_answer(fmt::format(R"({{"gpus":[{}]}})", gpus));
  });
  for (const std::size_t width : {80, 120, 160}) {
    around_.width = width;
    EXPECT_EQ(call(server, {"health"}), 0);
    const std::string text = new_out();
    EXPECT_TRUE(has(text, "dgx-1  0-7  H100  DRAINING")) << text;
    EXPECT_TRUE(has(text, "dust")) << text;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), width) << text;
  }
}

TEST_F(Gpus, HealthNamesEachTrouble) {
  const base::Instant now = around_.now();
  const std::pair<std::string_view, std::string_view> cases[] = {
      {R"({"gpu":{"state":"OFFLINE","reason":null}})", "OFFLINE"},
      {R"({"gpu":{"state":"OFFLINE","reason":"taken offline"}})", "taken offline"},
      {R"({"gpu":{"state":"IN_USE"},"problem":"GPU is lost"})", "GPU is lost"},
      {R"({"gpu":{"state":"IN_USE"},"ecc_uncorrected":2})", "2 uncorrected ECC errors"},
      {R"({"gpu":{"state":"IN_USE"},"remap_failed":true})", "a row could not be remapped"},
      {R"({"gpu":{"state":"IN_USE"},"remap_pending":true})",
       "rows wait for a reset to be remapped"},
      {R"({"gpu":{"state":"IN_USE"},"recovery_action":"GPU_RESET"})", "the driver wants GPU_RESET"},
      {R"({"gpu":{"state":"IN_USE"},"throttle_reasons":["HEAT_HARDWARE"]})",
       "clocks are held down: HEAT_HARDWARE"},
  };
  for (const auto& [document, trouble] : cases) {
    const auto troubles = troubles_of(*client::message_of<v1::GpuHealth>(document), now);
    EXPECT_EQ(troubles, std::vector<std::string>{std::string(trouble)}) << document;
  }
  EXPECT_TRUE(troubles_of(*client::message_of<v1::GpuHealth>(R"({"gpu":{"state":"IN_USE"}})"), now)
                  .empty());
}

// ---- drain --wait

constexpr std::string_view kFreeNode = R"("nodes":[{"name":"dgx-1","cpus_allocated":0}])";

TEST_F(Gpus, DrainWaitTellsWhichJobsStillHoldTheNodeUntilNoneDoes) {
  const std::string statuses[] = {
      R"({"gpus":[{"node":"dgx-1","index":0,"jobs":["42"]},{"node":"dgx-1","index":1,"jobs":["43"]},{"node":"dgx-2","index":0,"jobs":["9"]}],"nodes":[{"name":"dgx-1","cpus_allocated":8}]})",
      R"({"gpus":[{"node":"dgx-1","index":0,"jobs":[]}],"nodes":[{"name":"dgx-1","cpus_allocated":2}]})",
      fmt::format(R"({{"gpus":[{{"node":"dgx-2","index":0,"jobs":["9"]}}],{}}})", kFreeNode)};
  std::size_t looks = 0;
  FakeServer server([&](const Request& request) {
    if (request.method == "POST") return json_answer(kDrained);
    if (has(request.target, "/v1/jobs/42")) {
      return json_answer(R"({"id":"42","array_id":"40","array_index":2})");
    }
    if (has(request.target, "/v1/jobs/")) return json_answer(R"({"id":"43"})");
    return json_answer(statuses[looks++]);
  });
  EXPECT_EQ(call(server, {"drain", "--node", "dgx-1", "--wait"}), 0);
  EXPECT_EQ(err(),
            "gpu-platform: these GPUs are emulated\n"
            "gpu-platform: 2 jobs still hold node dgx-1: 40_2, 43\n"
            "gpu-platform: jobs without GPUs still run on node dgx-1\n"
            "gpu-platform: node dgx-1 is empty: no job holds it\n");
}

TEST_F(Gpus, DrainWaitGivesUpAfterItsTimeout) {
  FakeServer server([&](const Request& request) {
    if (request.method == "POST") return json_answer(kDrained);
    return json_answer(
        R"({"gpus":[{"node":"dgx-1","index":3,"jobs":["42"]},{"node":"dgx-1","index":4,"jobs":["43"]}]})");
  });
  EXPECT_EQ(call(server, {"drain", "--gpu", "dgx-1:3", "--wait", "--timeout", "1m"}), 124);
  EXPECT_EQ(err(),
            "gpu-platform: these GPUs are emulated\n"
            "gpu-platform: 1 job still holds GPU dgx-1:3: 42\n"
            "gpu-platform: GPU dgx-1:3 is not empty yet; it stays drained\n");
  EXPECT_EQ(call(server, {"online", "--gpu", "dgx-1:3", "--wait"}), 2);
}

}  // namespace
}  // namespace gpu_platform::cli
