#include "cli/cli.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>

#include <gtest/gtest.h>

#include "cli/cli_fixture_test.h"
#include "cli/text/json_view.h"

namespace gpu_platform::cli {
namespace {

TEST_F(Cli, PrintsTheIdAloneAfterSubmit) {
  Json sent;
  FakeServer server([&](const FakeServer::Request& request) {
    sent = Json::parse(request.body);
    return json_answer(kJob, 201);
  });
  EXPECT_EQ(
      call(server, {"submit",   "--gpus",    "8",      "--gpu-type", "H100,A100", "--gpu-memory",
                    "40G",      "--time",    "2h",     "--label",    "run=7",     "--env",
                    "X=a=b",    "--workdir", "sub",    "--priority", "high",      "--kind",
                    "training", "--",        "python", "--gpus",     "x"}),
      0);
  EXPECT_EQ(out(), "42\n");
  EXPECT_EQ(err(), "");
  EXPECT_EQ(server.requests(), std::vector<std::string>{"POST /v1/jobs"});
  EXPECT_EQ(sent["command"], Json::array({"python", "--gpus", "x"}));
  EXPECT_EQ(sent["gpus"], 8);
  EXPECT_EQ(sent["gpu_types"], Json::array({"H100", "A100"}));
  EXPECT_EQ(sent["gpu_memory_bytes"], std::int64_t{40} << 30);
  EXPECT_EQ(sent["time_limit_seconds"], 7200);
  EXPECT_EQ(sent["labels"]["run"], "7");
  EXPECT_EQ(sent["environment"]["X"], "a=b");
  EXPECT_EQ(sent["environment"]["SECRET"], "hunter2");
  EXPECT_EQ(sent["workdir"], "/home/ada/sub");
  EXPECT_EQ(sent["umask"], 027);
  EXPECT_EQ(sent["priority"], "high");
  EXPECT_EQ(sent["kind"], "TRAINING");
  EXPECT_EQ(sent["request_id"].get<std::string>().size(), 36U);
}

TEST_F(Cli, KnowsTheLettersOfSlurm) {
  Json sent;
  FakeServer server([&](const FakeServer::Request& request) {
    sent = Json::parse(request.body);
    return json_answer(kJob, 201);
  });
  EXPECT_EQ(call(server, {"submit", "-G", "8", "-N2", "-n", "4", "-c", "3", "-t", "1-00:00:00",
                          "-J", "night", "--", "x"}),
            0)
      << err();
  EXPECT_EQ(sent["gpus"], 4);
  EXPECT_EQ(sent["nodes"], 2);
  EXPECT_EQ(sent["cpus"], 6);
  EXPECT_EQ(sent["time_limit_seconds"], 86400);
  EXPECT_EQ(sent["name"], "night");
  EXPECT_EQ(call(server, {"submit", "-G", "0", "-n", "4", "--", "x"}), 0);
  EXPECT_EQ(sent["cpus"], 4);
  // A job with GPUs keeps its share of the node.
  EXPECT_EQ(call(server, {"submit", "-G", "1", "-n", "4", "--", "x"}), 0);
  EXPECT_FALSE(sent.contains("cpus"));
}

TEST_F(Cli, TakesTheFirstWordThatIsNoOptionForTheBeginningOfTheCommand) {
  Json sent;
  FakeServer server([&](const FakeServer::Request& request) {
    sent = Json::parse(request.body);
    return json_answer(kJob, 201);
  });
  EXPECT_EQ(call(server, {"submit", "--gpus", "1", "--per-gpu", "/bin/true"}), 0) << err();
  EXPECT_EQ(sent["command"], Json::array({"/bin/true"}));
  EXPECT_EQ(call(server, {"submit", "-G1", "python", "x.py", "--gpus", "8", "-v", "--", "y"}), 0);
  EXPECT_EQ(sent["command"], Json::array({"python", "x.py", "--gpus", "8", "-v", "--", "y"}));
  EXPECT_EQ(sent["gpus"], 1);
  EXPECT_EQ(call(server, {"submit", "--gpus", "1", "--", "--odd", "--", "y"}), 0);
  EXPECT_EQ(sent["command"], Json::array({"--odd", "--", "y"}));
}

TEST_F(Cli, NamesTheOptionInWhatTheDaemonSaysOfItsField) {
  FakeServer server([&](const FakeServer::Request&) {
    return json_answer(
        R"({"detail":"time_limit_seconds: 2d exceeds the site's maximum of 1d","status":409,"code":"FAILED_PRECONDITION","field":"time_limit_seconds"})",
        409);
  });
  EXPECT_EQ(call(server, {"submit", "--gpus", "1", "--time", "2d", "true"}), 4);
  EXPECT_TRUE(has(err(), "error: --time: 2d exceeds the site's maximum of 1d")) << err();
  EXPECT_EQ(call(server, {"jobs", "update", "7", "--time", "2d"}), 4);
  EXPECT_FALSE(has(err(), "time_limit_seconds")) << err();
}

TEST_F(Cli, HasShortFormsOfWhatPeopleTypeMost) {
  FakeServer server([&](const FakeServer::Request& request) {
    if (request.target == "/v1/status") {
      return json_answer(
          R"({"nodes":[{"name":"n10","state":"UP","total_gpus":8,"available_gpus":3},{"name":"n9","state":"DOWN","reason":"dark"}]})");
    }
    return json_answer(kJob);
  });
  EXPECT_EQ(call(server, {"explain", "40_3"}), 0);
  EXPECT_EQ(server.requests().back(), "GET /v1/jobs/40_3/explanation?thorough=true");
  EXPECT_EQ(call({"logs", "--help"}), 0);
  EXPECT_TRUE(has(out(), "Usage: gpu-platform jobs logs")) << out();
  EXPECT_EQ(call({"top", "--help"}), 0);
  EXPECT_TRUE(has(out(), "Usage: gpu-platform watch")) << out();
  const std::size_t seen = out().size();
  EXPECT_EQ(call(server, {"nodes", "-o", "name"}), 0);
  EXPECT_EQ(out().substr(seen), "n9\nn10\n");
  EXPECT_EQ(call(server, {"nodes"}), 0);
  EXPECT_TRUE(has(out(), "dark")) << out();
  const std::size_t before = out().size();
  EXPECT_EQ(call(server, {"nodes", "--json"}), 0);
  EXPECT_EQ(Json::parse(out().substr(before))["nodes"][1]["available_gpus"], 3);
}

TEST_F(Cli, SaysOfWhichNodesThereAreNoReadingsAndWhy) {
  FakeServer server([&](const FakeServer::Request&) {
    return json_answer(
        R"({"nodes":[{"name":"n1","state":"UP","no_readings":"none is set"},{"name":"n2","state":"UP"},{"name":"n3","state":"UP","no_readings":"none is set"},{"name":"n4","state":"UP","no_readings":"no pod"}]})");
  });
  for (const std::string_view page : {"nodes", "status"}) {
    const std::size_t before = out().size();
    EXPECT_EQ(call(server, {std::string(page)}), 0);
    const std::string shown = out().substr(before);
    EXPECT_TRUE(
        has(shown, "no readings of n4: no pod\nno readings of n1 and 1 more: none is set\n"))
        << shown;
  }
}

// A socket that a killed daemon left: nothing accepts there until the next one begins.
TEST_F(Cli, SubmitsAgainWhereADaemonIsAboutToComeBack) {
  FakeServer server([&](const FakeServer::Request&) { return json_answer(kJob, 201); });
  const std::string path = server.path() + ".left";
  const int left = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(left, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  const std::vector<std::string> submit = {"--server", "unix:" + path, "submit", "--gpus", "1",
                                           "x"};
  EXPECT_EQ(call(submit), 5);
  EXPECT_GE(clock_, base::seconds(10));
  on_pause_ = [&] {
    ::unlink(path.c_str());
    EXPECT_TRUE(::symlink(server.path().c_str(), path.c_str()) == 0 || errno == EEXIST);
  };
  EXPECT_EQ(call(submit), 0) << err();
  EXPECT_EQ(out(), "42\n");
  ::unlink(path.c_str());
  ::close(left);
  const int pauses = pauses_;
  EXPECT_EQ(call(submit), 5);
  EXPECT_EQ(pauses_, pauses) << "where there is no socket no daemon is about to come back";
}

TEST_F(Cli, WarnsWhenNothingAsksForAGpu) {
  std::string body;
  FakeServer server([&](const FakeServer::Request& request) {
    body = request.body;
    return json_answer(kJob, 201);
  });
  EXPECT_EQ(call(server, {"submit", "--", "true"}), 0);
  EXPECT_TRUE(begins(err(), "warning: nothing asks for a GPU")) << err();
  EXPECT_EQ(out(), "42\n");
  EXPECT_FALSE(has(body, "\"gpus\""));
}

TEST_F(Cli, AsksForOneGpuWhenOnlyATypeIsNamed) {
  Json sent;
  FakeServer server([&](const FakeServer::Request& request) {
    sent = Json::parse(request.body);
    return json_answer(kJob, 201);
  });
  EXPECT_EQ(call(server, {"submit", "--gpu-type", "H100", "--", "true"}), 0);
  EXPECT_EQ(sent["gpus"], 1);
  EXPECT_EQ(err(), "");
}

TEST_F(Cli, SendsWhatEachNodeOfAGangIsToHave) {
  Json sent;
  FakeServer server([&](const FakeServer::Request& request) {
    sent = Json::parse(request.body);
    return json_answer(kJob, 201);
  });
  EXPECT_EQ(call(server, {"submit", "--gpus", "16", "--nodes", "2", "--network-level", "rack",
                          "--exclude", "n[1-2],n4", "--gpu-type", "H100:1.0,A100:0.5", "--capacity",
                          "on-demand", "--", "x"}),
            0);
  EXPECT_EQ(sent["gpus"], 8);
  EXPECT_EQ(sent["nodes"], 2);
  EXPECT_EQ(sent["network_level"], "RACK");
  EXPECT_EQ(sent["capacity"], "ON_DEMAND");
  EXPECT_EQ(sent["exclude"], Json::array({"n[1-2],n4"}));
  EXPECT_EQ(sent["gpu_types"], Json::array({"H100", "A100"}));
  EXPECT_EQ(sent["gpu_speeds"], Json::array({1.0, 0.5}));
  EXPECT_EQ(call(server, {"submit", "--gpus-per-node", "4", "--nodes", "3", "--", "x"}), 0);
  EXPECT_EQ(sent["gpus"], 4);
  EXPECT_EQ(err(), "");
  EXPECT_EQ(call(server, {"submit", "--gpus", "9", "--nodes", "2", "--", "x"}), 2);
  EXPECT_EQ(call(server, {"submit", "--gpu-type", "H100:fast", "--", "x"}), 2);
  EXPECT_EQ(call(server, {"submit", "--gpus", "8", "--gpus-per-node", "4", "--", "x"}), 2);
}

TEST_F(Cli, SendsWhichGpusTheJobMayHave) {
  Json sent;
  FakeServer server([&](const FakeServer::Request& request) {
    sent = Json::parse(request.body);
    return json_answer(kJob, 201);
  });
  EXPECT_EQ(call(server, {"submit", "--gpus", "2", "--gpus-avoid", "GPU-1,n1:3", "--gpus-only",
                          "n1:0,n1:1,n1:3", "--accept-degraded", "--", "x"}),
            0);
  EXPECT_EQ(sent["gpus_avoid"], Json::array({"GPU-1,n1:3"}));
  EXPECT_EQ(sent["gpus_only"], Json::array({"n1:0,n1:1,n1:3"}));
  EXPECT_EQ(sent["accept_degraded"], true);
  EXPECT_EQ(call(server, {"submit", "--gpus", "2", "--gpus-only", "", "--", "x"}), 2);
}

TEST_F(Cli, SendsWhetherTheGpusMayLieOnSeveralSockets) {
  Json sent;
  FakeServer server([&](const FakeServer::Request& request) {
    sent = Json::parse(request.body);
    return json_answer(kJob, 201);
  });
  EXPECT_EQ(call(server, {"submit", "--gpus", "4", "--allow-cross-numa", "--", "true"}), 0);
  EXPECT_EQ(sent["numa"], "ALLOW_CROSS");
  EXPECT_EQ(call(server, {"submit", "--gpus", "4", "--strict-numa", "--", "true"}), 0);
  EXPECT_EQ(sent["numa"], "STRICT");
  EXPECT_EQ(call(server, {"submit", "--gpus", "4", "--", "true"}), 0);
  EXPECT_FALSE(sent.contains("numa"));
}

TEST_F(Cli, NeverShowsTheValuesOfVariables) {
  around_.environment.push_back("BROKEN=\xff hunter3");
  FakeServer server([&](const FakeServer::Request&) {
    return json_answer(R"({"detail":"no","status":409,"code":"FAILED_PRECONDITION"})", 409);
  });
  EXPECT_EQ(call(server, {"submit", "--gpus", "1", "--", "true"}), 4);
  EXPECT_TRUE(has(err(), "variable BROKEN is not UTF-8")) << err();
  EXPECT_FALSE(has(err(), "hunter"));
}

struct UsageCase {
  std::vector<std::string> words;
  std::string_view said;
};

TEST_F(Cli, ExitsWith2AndSaysWhatIsAllowed) {
  const UsageCase cases[] = {
      {{"sumbit"}, "did you mean 'submit'?"},
      {{"jobs", "lits"}, "unknown command 'jobs lits'; did you mean 'list'?"},
      {{"frobnicate"}, "unknown command 'frobnicate'"},
      {{"submit", "--gpu", "1", "--", "true"}, "unknown option '--gpu'; did you mean '--gpus'?"},
      {{"jobs", "list", "--all=3"}, "--all takes no value"},
      {{"submit", "--gpus", "-1", "--", "true"},
       "--gpus: '-1' is not a whole number from 0 to 65535, or a part from 0.001 to 0.999 with at "
       "most three decimals"},
      {{"submit", "--gpus", "--", "true"}, "--gpus"},
      {{"submit", "--time", "soon", "--", "true"}, "--time: 'soon' is not a duration"},
      {{"submit", "--memory", "5X", "--", "true"}, "--memory: '5X' is not a size"},
      {{"submit", "--label", "novalue", "--", "true"}, "--label: 'novalue' is not of the form"},
      {{"submit", "--env", "=x", "--", "true"}, "--env: '=x' is not of the form"},
      {{"submit", "--name", "\xff", "--", "true"}, "--name: the text is not valid UTF-8"},
      {{"submit", "--gpus", "2", "--allow-cross-numa", "--strict-numa", "--", "true"},
       "--strict-numa: cannot be used together with --allow-cross-numa"},
      {{"submit", "--", "a\xff"}, "command: the text is not valid UTF-8"},
      {{"submit", "--gpus", "1"}, "no command"},
      {{"submit", "--dependency", "", "--", "true"}, "--dependency: the value is empty"},
      {{"submit", "--array", "", "--", "true"}, "--array: the value is empty"},
      {{"submit", "--nodelist", "", "--", "true"}, "--nodelist: the value is empty"},
      {{"submit", "-n", "3", "-N", "2", "true"},
       "--ntasks: 3 tasks cannot be divided among 2 nodes"},
      {{"submit", "-n", "2", "--per-gpu", "true"},
       "--ntasks: cannot be used together with --per-gpu"},
      {{"submit", "--typo", "1", "true"}, "unknown option '--typo'"},
      {{"jobs", "describe"}, "ID is missing"},
      {{"jobs", "describe", "1", "2"}, "unexpected argument '2'"},
      {{"jobs", "list", "--limit", "0"}, "--limit: '0' is out of range"},
      {{"jobs", "list", "--since", "someday"}, "--since: 'someday' is neither"},
      {{"jobs", "wait", "1", "--timeout", "x"}, "--timeout"},
      {{"--server", "tcp://x", "status"}, "write https://HOST:PORT or unix:PATH"},
      {{"status", "--server=nowhere"}, "'nowhere' is neither a profile"},
      {{"jobs"}, "jobs list"},
      {{}, "Run jobs:"},
  };
  std::size_t seen = 0;
  for (const auto& [words, said] : cases) {
    EXPECT_EQ(call(words), 2) << said;
    const std::string told = err().substr(seen);
    seen = err().size();
    EXPECT_TRUE(has(told, said)) << told;
  }
  EXPECT_EQ(out(), "");
}

TEST_F(Cli, ExitsWith5AndSaysWhatToDoWhereThereIsNoDaemon) {
  EXPECT_EQ(call({"--server", "unix:/nonexistent/socket", "status"}), 5);
  EXPECT_TRUE(has(err(), "/nonexistent/socket")) << err();
  EXPECT_TRUE(has(err(), "gpu-platform serve")) << err();
}

}  // namespace
}  // namespace gpu_platform::cli
