#include "cli/cli_fixture_test.h"
#include "cli/commands/show_fixture.h"
#include "cli/text/json_view.h"

// Parts of GPUs on the command line.

namespace gpu_platform::cli {
namespace {

using Request = FakeServer::Request;

class Parts : public Show {
 protected:
  FakeServer::Handler remembering() {
    return [this](const Request& request) {
      sent_ = Json::parse(request.body, nullptr, false);
      return json_answer(kJob, 201);
    };
  }
  Json sent_;
};

TEST_F(Parts, AreAskedForAsANumberOfGpus) {
  FakeServer server(remembering());
  EXPECT_EQ(call(server, {"submit", "--gpus", "0.5", "--share", "time-slice", "--require-isolation",
                          "memory", "--slice", "100ms", "--gpu-memory", "20G", "--array", "0-3",
                          "--", "x"}),
            0)
      << err();
  EXPECT_EQ(sent_["gpus"], 1);
  EXPECT_EQ(sent_["gpu_share"], 0.5);
  EXPECT_EQ(sent_["share_mode"], "TIME_SLICE");
  EXPECT_EQ(sent_["require_isolation"], "MEMORY");
  EXPECT_EQ(sent_["slice_seconds"], 0.1);
  EXPECT_EQ(sent_["gpu_memory_bytes"], std::int64_t{20} << 30);
  EXPECT_EQ(call(server, {"submit", "-G", "0.125", "--share", "none", "--", "x"}), 0) << err();
  EXPECT_EQ(sent_["gpu_share"], 0.125);
  EXPECT_EQ(sent_["share_mode"], "NONE");
  EXPECT_EQ(call(server, {"submit", "--gpus", "2", "--", "x"}), 0) << err();
  EXPECT_FALSE(sent_.contains("gpu_share"));
}

TEST_F(Parts, ThatAreNoneAreRefusedWithWhatToWrite) {
  FakeServer server(remembering());
  const auto refused = [&](std::vector<std::string> options) {
    options.insert(options.begin(), "submit");
    options.insert(options.end(), {"--", "x"});
    const std::size_t before = err().size();
    EXPECT_EQ(call(server, options), 2);
    return err().substr(before);
  };
  EXPECT_TRUE(has(refused({"--gpus", "1.5"}),
                  "--gpus 1.5: a part is for one GPU; write --gpus 2 or a part such as "
                  "--gpus 0.5"));
  EXPECT_TRUE(has(refused({"--gpus", "7.25"}), "write --gpus 8 or a part"));
  EXPECT_TRUE(has(refused({"--gpus", "0.1234"}), "has more than three decimals: write 0.123"));
  EXPECT_TRUE(has(refused({"--gpus", "0.0"}), "the least is 0.001"));
  for (const char* bad : {"-0.5", "nan", "1e-1", "0,5"}) {
    EXPECT_TRUE(has(refused({fmt::format("--gpus={}", bad)}),
                    fmt::format("--gpus: '{}' is not a whole number from 0 to 65535, or a part "
                                "from 0.001 to 0.999 with at most three decimals",
                                bad)));
  }
  EXPECT_TRUE(has(refused({"--gpus", "70000"}), "out of range: 0 to 65535 is allowed"));
  EXPECT_TRUE(has(refused({"--gpus", "0.5", "--nodes", "2"}),
                  "--gpus 0.5: a part of a GPU is on one node; leave out --nodes and "
                  "--allow-cross-node, or write whole GPUs such as --gpus 2"));
  EXPECT_TRUE(has(refused({"--gpus", "0.5", "--allow-cross-node"}), "is on one node"));
  EXPECT_TRUE(has(refused({"--gpus", "0.5", "--share", "mig"}), "--share: "));
  EXPECT_TRUE(has(refused({"--gpus", "0.5", "--slice", "50ms"}),
                  "--slice: '50ms' is out of range: 100ms to 60s is allowed"));
  EXPECT_TRUE(has(refused({"--gpus", "0.5", "--slice", "61s"}), "100ms to 60s is allowed"));
  EXPECT_TRUE(server.requests().empty());
}

TEST_F(Parts, HaveTheTimeLimitThatTheirTimeOnTheGpuNeeds) {
  FakeServer server(remembering());
  const auto limit = [&](std::vector<std::string> options) {
    options.insert(options.begin(), "submit");
    options.insert(options.end(), {"--", "x"});
    EXPECT_EQ(call(server, options), 0) << err();
    EXPECT_FALSE(sent_.contains("gpu_time_seconds"));
    return sent_["time_limit_seconds"];
  };
  EXPECT_EQ(limit({"--gpus", "0.5", "--gpu-time", "1h"}), 7200);
  EXPECT_EQ(limit({"--gpus", "0.25", "--gpu-time", "15m"}), 3600);
  EXPECT_EQ(limit({"--gpus", "2", "--gpu-time", "90m"}), 5400);
  EXPECT_EQ(limit({"--gpu-type", "H100", "--gpu-time", "1h"}), 3600) << "one of that type";
  const auto refused = [&](std::vector<std::string> options) {
    options.insert(options.begin(), "submit");
    options.insert(options.end(), {"--", "x"});
    const std::size_t before = err().size();
    EXPECT_EQ(call(server, options), 2);
    return err().substr(before);
  };
  EXPECT_TRUE(has(refused({"--gpus", "0.5", "--gpu-time", "1h", "--time", "2h"}),
                  "--gpu-time: the time limit follows from it; leave out time_limit_seconds "
                  "(--time), or give that alone"));
  for (const char* gpus : {"--gpus=0", "--no-preemptible"}) {
    EXPECT_TRUE(has(refused({gpus, "--gpu-time", "1h"}),
                    "--gpu-time: is the time on a GPU, and the job asks for none; ask for GPUs "
                    "(gpus, --gpus), or give the time limit instead (time_limit_seconds, --time)"));
  }
  EXPECT_TRUE(
      has(refused({"--gpus", "1", "--gpu-time", "soon"}), "--gpu-time: 'soon' is not a duration"));
}

TEST_F(Parts, ADryRunTellsTheTimeLimitThatFollows) {
  FakeServer server([](const Request&) { return json_answer(R"({"starts_now":true})"); });
  EXPECT_EQ(call(server, {"submit", "--dry-run", "--gpus", "0.5", "--gpu-time", "1h", "--", "x"}),
            0);
  EXPECT_TRUE(has(err(), "the time limit that follows from the time on the GPU is 2h")) << err();
}

TEST_F(Parts, ALimitThatIsTooLongIsThatOfTheTimeOnTheGpu) {
  FakeServer server([](const Request&) {
    return json_answer(
        R"({"detail":"time_limit_seconds 2h: the site's maximum is 1h","status":409,)"
        R"("code":"FAILED_PRECONDITION","field":"time_limit_seconds"})",
        409);
  });
  EXPECT_EQ(call(server, {"submit", "--gpus", "0.5", "--gpu-time", "1h", "--", "x"}), 4);
  EXPECT_TRUE(has(err(), "the site's maximum is 1h; it follows from --gpu-time 1h")) << err();
}

TEST_F(Parts, AreRefusedByTheNameOfTheOption) {
  FakeServer server([](const Request&) {
    return json_answer(R"({"detail":"gpu_share 0.5: no GPU here may be shared","status":409,)"
                       R"("code":"FAILED_PRECONDITION","field":"gpu_share"})",
                       409);
  });
  EXPECT_EQ(call(server, {"submit", "--gpus", "0.5", "--", "x"}), 4);
  EXPECT_TRUE(has(err(), "error: --gpus 0.5: no GPU here may be shared")) << err();
}

TEST_F(Parts, OfWaitingJobsAreChanged) {
  FakeServer server([this](const Request& request) {
    if (request.method == "GET") return json_answer(kJob);
    sent_ = Json::parse(request.body);
    return json_answer(R"({"job":{"id":"7","state":"QUEUED"},"changed":true})");
  });
  EXPECT_EQ(call(server, {"jobs", "update", "7", "--gpus", "0.25"}), 0) << err();
  EXPECT_EQ(sent_, (Json{{"spec", {{"gpus", 1}, {"gpu_share", 0.25}}}}));
}

constexpr std::string_view kHalf =
    R"({"node":"n1","index":3,"share":0.5,"memory_bytes":42949672960,"mode":"TIME_SLICE",)"
    R"("memory_rung":"WATCHDOG","compute_rung":"TIME_SLICE"})";

TEST_F(Parts, AreDescribedWithTheirWalls) {
  FakeServer server([](const Request&) {
    return json_answer(fmt::format(
        R"({{"id":"9","state":"RUNNING","gpus":[{0}],"attempts":[{{"attempt":1,"gpus":[{0}]}}],)"
        R"("spec":{{"gpus":1,"gpu_share":0.5,"share_mode":"TIME_SLICE","slice_seconds":0.5}}}})",
        kHalf));
  });
  EXPECT_EQ(call(server, {"jobs", "describe", "9"}), 0);
  EXPECT_TRUE(has(out(), "Place:          0.5 of n1:3\n")) << out();
  EXPECT_TRUE(has(out(),
                  "Part:           0.5 of GPU 3 with 40 GiB (time-slice; memory: watchdog, "
                  "compute: time-slice)\n"))
      << out();
  EXPECT_TRUE(has(out(),
                  "Neighbours:     A neighbour can take the memory of this job's part until "
                  "the platform stops it"))
      << out();
  EXPECT_TRUE(has(out(), "No neighbour runs in this job's turn")) << out();
  EXPECT_TRUE(has(out(), "Asks for:       0.5 of a GPU, shared by time-slice, turns of 500ms"))
      << out();
}

TEST_F(Parts, WholeGpusHaveNoNeighbours) {
  FakeServer server([](const Request&) {
    return json_answer(
        R"({"id":"9","state":"RUNNING","gpus":[{"node":"n1","index":3,"share":1}],"spec":{"gpus":1}})");
  });
  EXPECT_EQ(call(server, {"jobs", "describe", "9"}), 0);
  EXPECT_TRUE(has(out(), "Place:          n1:3\n")) << out();
  EXPECT_FALSE(has(out(), "Part:")) << out();
  EXPECT_FALSE(has(out(), "Neighbours:")) << out();
}

TEST_F(Parts, StandInTheListsAsNumbersOfGpus) {
  FakeServer server([](const Request& request) {
    if (begins(request.target, "/v1/queue")) {
      return json_answer(
          R"({"total":1,"jobs":[{"id":"8","state":"QUEUED","spec":{"name":"a","gpus":1,"gpu_share":0.25}}]})");
    }
    return json_answer(
        R"({"jobs":[{"id":"9","state":"RUNNING","spec":{"name":"b","gpus":1,"gpu_share":0.5}}]})");
  });
  EXPECT_EQ(call(server, {"queue", "-o", "json"}), 0);
  EXPECT_EQ(call(server, {"queue"}), 0);
  EXPECT_TRUE(has(out(), "0.25")) << out();
  EXPECT_EQ(call(server, {"jobs", "list"}), 0);
  EXPECT_TRUE(has(out(), "0.5")) << out();
  EXPECT_FALSE(has(out(), "3500")) << out();
}

constexpr std::string_view kShared =
    R"({"total_gpus":2,"available_gpus":1,"available_share":1.25,"utilization":0.375,)"
    R"("nodes":[{"name":"n1","state":"UP","total_gpus":2,"available_gpus":1,"available_share":1.25}],)"
    R"("gpus":[{"node":"n1","index":0,"type":"H100-80GB","state":"IN_USE","jobs":["7","8"],"free_share":0.25,)"
    R"("parts":[{"job":"7","share":0.5},{"job":"8","share":0.25}]},)"
    R"({"node":"n1","index":1,"type":"H100-80GB","state":"AVAILABLE","free_share":1}]})";

TEST_F(Parts, AreCountedBesideWholeGpus) {
  FakeServer server([](const Request& request) {
    return json_answer(has(request.target, "/v1/jobs") ? R"({"jobs":[]})" : kShared);
  });
  EXPECT_EQ(call(server, {"status"}), 0);
  EXPECT_TRUE(has(out(), "2 GPUs, 1 + 0.25 available, 38 % allocated\n")) << out();
  EXPECT_EQ(call(server, {"status", "--all"}), 0);
  EXPECT_TRUE(has(out(), "7 (0.5), 8 (0.25)")) << out();
  EXPECT_TRUE(has(out(), "FREE")) << out();
}

}  // namespace
}  // namespace gpu_platform::cli
