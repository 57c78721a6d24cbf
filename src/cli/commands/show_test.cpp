#include <filesystem>
#include <fstream>

#include "cli/commands/show_fixture.h"
#include "cli/text/json_view.h"

namespace gpu_platform::cli {
namespace {

using Request = FakeServer::Request;

TEST_F(Show, WhoamiTellsTheRoleAndTheTeams) {
  FakeServer server([](const Request&) {
    return json_answer(
        R"({"user":"ada","uid":1000,"role":"OPERATOR","teams":["vision"],"coordinates":[],)"
        R"("credential":"SOCKET"})");
  });
  EXPECT_EQ(call(server, {"whoami"}), 0);
  EXPECT_EQ(out(),
            "User:         ada (1000)\nRole:         operator\nTeams:        vision\n"
            "Coordinates:  none\nCredential:   socket\n");
  EXPECT_EQ(server.requests(), std::vector<std::string>{"GET /v1/whoami"});
}

TEST_F(Show, WhoamiNamesTheCredential) {
  std::string shown;
  FakeServer server([&](const Request&) {
    return json_answer(R"({"user":"ada","uid":1000,"role":"USER","teams":[],"coordinates":[],)" +
                       shown + "}");
  });
  shown = R"("credential":"TOKEN","credential_name":"laptop","token":"12")";
  EXPECT_EQ(call(server, {"whoami"}), 0);
  EXPECT_TRUE(has(out(), "Credential:   token laptop (12)\n")) << out();
  shown = R"("credential":"OPENID","credential_name":"openid:ada","issuer":"https://sso.example",)"
          R"("user_claim":"sub")";
  EXPECT_EQ(call(server, {"whoami"}), 0);
  EXPECT_TRUE(has(out(), "Credential:   openid openid:ada (claim sub of https://sso.example)\n"))
      << out();
  shown = R"("credential":"CERTIFICATE","credential_name":"cn:a\u001b[2Jda")";
  EXPECT_EQ(call(server, {"whoami"}), 0);
  EXPECT_TRUE(has(out(), "Credential:   certificate cn:a")) << out();
  EXPECT_FALSE(has(out(), "\x1b")) << out();
}

TEST_F(Show, DescribePassesTheDocumentThroughUnchanged) {
  FakeServer server([](const Request&) { return json_answer(kJob); });
  EXPECT_EQ(call(server, {"jobs", "describe", "42", "--json"}), 0);
  EXPECT_EQ(out(), std::string(kJob) + "\n");
}

TEST_F(Show, DescribeIsAPageForPeople) {
  FakeServer server([](const Request&) { return json_answer(kJob); });
  EXPECT_EQ(call(server, {"jobs", "describe", "42"}), 0);
  for (const std::string_view line :
       {"Job:            42\n", "State:          QUEUED\n",
        "Waits because:  1 node is 4 GPUs short\n", "Priority:       MEDIUM (5)\n",
        "Command:        python 'a b.py'\n", "Labels:         run=7\n",
        "Submitted:      2026-07-01 12:00:00 +0000 (3m12s ago)\n"}) {
    EXPECT_TRUE(has(out(), line)) << line << out();
  }
}

TEST_F(Show, DescribeHasLabelsInTheOrderOfTheirKeys) {
  FakeServer server([](const Request&) {
    return json_answer(R"({"id":"9","spec":{"labels":{"run":"7","run-id":"3","run.at":"n1"}}})");
  });
  EXPECT_EQ(call(server, {"jobs", "describe", "9"}), 0);
  EXPECT_TRUE(has(out(), "Labels:         run=7 run-id=3 run.at=n1\n")) << out();
}

TEST_F(Show, DescribeShowsWarnings) {
  FakeServer server([](const Request&) {
    return json_answer(
        R"({"id":"9","state":"RUNNING","warnings":["its 4 GPUs lie on 2 sockets of n1"]})");
  });
  EXPECT_EQ(call(server, {"jobs", "describe", "9"}), 0);
  EXPECT_TRUE(has(out(), "Warning:        its 4 GPUs lie on 2 sockets of n1\n")) << out();
}

TEST_F(Show, DescribeProposesMoreMemoryAndTime) {
  std::string end = R"("state":"FAILED","reason":"OUT_OF_MEMORY")";
  FakeServer server([&](const Request&) {
    return json_answer(
        R"({"id":"42","spec":{"memory_bytes":104857600,"gpu_memory_bytes":4294967296,)"
        R"("time_limit_seconds":3600},)"
        R"("attempts":[{"attempt":1,"peak_memory_bytes":104857600}],)" +
        end + "}");
  });
  EXPECT_EQ(call(server, {"jobs", "describe", "42"}), 0);
  EXPECT_TRUE(has(out(),
                  "Advice:         used all of --memory 100M (peak 100 MiB); try --memory 150M: "
                  "gpu-platform jobs rerun 42 --memory 150M\n"))
      << out();
  end = R"("state":"TIMED_OUT","reason":"TIME_LIMIT")";
  EXPECT_EQ(call(server, {"jobs", "describe", "42"}), 0);
  EXPECT_TRUE(has(out(),
                  "Advice:         used all of --time 1h; try --time 2h: gpu-platform jobs rerun "
                  "42 --time 2h\n"))
      << out();
  end = R"("state":"FAILED","reason":"GPU_MEMORY")";
  EXPECT_EQ(call(server, {"jobs", "describe", "42"}), 0);
  EXPECT_TRUE(has(out(),
                  "Advice:         used more of its GPU than --gpu-memory 4G; try --gpu-memory 6G: "
                  "gpu-platform jobs rerun 42 --gpu-memory 6G\n"))
      << out();
  end = R"("state":"FAILED","exit_code":1)";
  const std::size_t before = out().size();
  EXPECT_EQ(call(server, {"jobs", "describe", "42"}), 0);
  EXPECT_FALSE(has(out().substr(before), "Advice")) << out();
}

TEST_F(Show, DescribeShowsEachAttempt) {
  FakeServer server([](const Request&) {
    return json_answer(
        R"({"id":"9","state":"FAILED","exit_code":1,"attempts":[)"
        R"({"attempt":1,"state":"RELEASED","started_at":"2026-07-01T12:00:00Z","ended_at":"2026-07-01T12:01:00Z","exit_code":null,"signal":"SIGKILL","reason":"OUT_OF_MEMORY","nodes":["n1"],"cpu_time_seconds":61.25,"peak_memory_bytes":1073741824},)"
        R"({"attempt":2,"state":"RELEASED","started_at":"2026-07-01T12:02:00Z","ended_at":"2026-07-01T12:02:01Z","exit_code":1,"gpus":[{"node":"n2","index":5}]}]})");
  });
  EXPECT_EQ(call(server, {"jobs", "describe", "9"}), 0);
  EXPECT_TRUE(has(out(),
                  "2026-07-01 12:00:00 +0000  1m00s     61.2s        1 GiB  n1     signal SIGKILL, "
                  "OUT_OF_MEMORY"))
      << out();
  EXPECT_TRUE(has(out(), "1s         -            -  n2:5   exit code 1")) << out();
}

TEST_F(Show, DescribeShowsTheStepsOfTheLatestAttempt) {
  FakeServer server([](const Request&) {
    return json_answer(
        R"({"id":"9","state":"RUNNING","attempt":2,"steps":[)"
        R"({"attempt":1,"number":0,"name":"former","tasks":1,"gpus":0,"started_at":"2026-07-01T11:00:00Z"},)"
        R"({"attempt":2,"number":0,"name":"prepare","tasks":4,"gpus":2,"started_at":"2026-07-01T12:00:00Z","ended_at":"2026-07-01T12:01:00Z","exit_code":0,"user_cpu_seconds":60,"system_cpu_seconds":1.25,"peak_memory_bytes":1073741824},)"
        R"({"attempt":2,"number":1,"name":"train","tasks":1,"gpus":2,"started_at":"2026-07-01T12:01:00Z"}]})");
  });
  EXPECT_EQ(call(server, {"jobs", "describe", "9"}), 0);
  EXPECT_TRUE(has(out(),
                  "  0  prepare      4     2  2026-07-01 12:00:00 +0000  1m00s     61.2s    "
                  "    1 GiB  exit code 0"))
      << out();
  EXPECT_TRUE(has(out(), "  1  train        1     2  2026-07-01 12:01:00 +0000")) << out();
  EXPECT_TRUE(has(out(), "-  runs\n")) << out();
  EXPECT_FALSE(has(out(), "former")) << out();
}

TEST_F(Show, CancelOfAnEndedJobSaysSoAndIsNoError) {
  FakeServer server([](const Request& request) {
    if (has(request.target, "/v1/jobs/7/")) {
      return json_answer(R"({"detail":"no job 7","code":"NOT_FOUND"})", 404);
    }
    return json_answer(
        fmt::format(R"({{"changed":false,"job":{}}})", ended_job("FAILED", R"("exit_code":3)")));
  });
  EXPECT_EQ(call(server, {"jobs", "cancel", "42"}), 0);
  EXPECT_TRUE(has(err(), "job 42 FAILED: exit code 3; it had ended before")) << err();
  EXPECT_EQ(call(server, {"jobs", "cancel", "7", "42"}), 3);
  EXPECT_EQ(server.requests().back(), "POST /v1/jobs/42/cancel");
}

TEST_F(Show, ProblemsGoToStderrAsTheyCameWithJson) {
  constexpr std::string_view kProblem = R"({"status":404,"detail":"no job 7","code":"NOT_FOUND"})";
  FakeServer server([&](const Request&) { return json_answer(kProblem, 404); });
  EXPECT_EQ(call(server, {"jobs", "describe", "7", "--json"}), 3);
  EXPECT_EQ(out(), "");
  EXPECT_EQ(err(), std::string(kProblem) + "\n");
}

TEST_F(Show, NoDaemonIsAProblemDocumentToo) {
  EXPECT_EQ(call({"--server", "unix:/nonexistent/s", "status", "--json"}), 5);
  const Json document = Json::parse(err());
  EXPECT_EQ(document["title"], "No daemon");
}

TEST_F(Show, VersionNeedsNoDaemon) {
  EXPECT_EQ(call({"--server", "unix:/nonexistent/s", "version", "--json"}), 0);
  EXPECT_TRUE(Json::parse(out())["daemon"].is_null());
}

TEST_F(Show, HelpHasItsExamplesFirst) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"submit", "--help"},
                                                {"help", "jobs", "list"},
                                                {"config", "check", "-h"}}) {
    const std::size_t seen = out().size();
    EXPECT_EQ(call(words), 0);
    const std::string page = out().substr(seen);
    EXPECT_LT(page.find("Examples:"), page.find("Usage:")) << page;
  }
}

TEST_F(Show, OverviewListsCommandsOfOthersAndStartsThem) {
  std::vector<std::string> got;
  const OtherCommand others[] = {{"serve", "Run the daemon.", [&](int argc, char** argv) {
                                    got.assign(argv, argv + argc);
                                    return 9;
                                  }}};
  EXPECT_EQ(run_in(around_, {"--help"}, others), 0);
  EXPECT_TRUE(has(out(), "  serve         Run the daemon.\n")) << out();
  EXPECT_EQ(run_in(around_, {"serve", "--emulate", "dgx"}, others), 9);
  EXPECT_EQ(got, (std::vector<std::string>{"serve", "--emulate", "dgx"}));
  EXPECT_EQ(run_in(around_, {"sevre"}, others), 2);
  EXPECT_TRUE(has(err(), "did you mean 'serve'?"));
}

TEST_F(Show, ConfigCheckExitsWith2AndNamesThePlace) {
  FakeServer place([](const Request&) { return std::string(); });  // for its directory
  const std::string file = place.path() + ".yaml";
  std::FILE* yaml = std::fopen(file.c_str(), "w");
  ASSERT_NE(yaml, nullptr);
  std::fputs("scheduling:\n  max_queue_sice: 5\n", yaml);
  std::fclose(yaml);
  EXPECT_EQ(call({"config", "check", file}), 2);
  EXPECT_TRUE(has(err(), file + ":2:3: unknown key 'max_queue_sice'")) << err();
  EXPECT_EQ(call({"config", "check", file, "--json"}), 2);
  EXPECT_EQ(Json::parse(out())["problems"][0]["line"], 2);
}

TEST_F(Show, ConfigShowAsksTheDaemonWhereNoFileIsNamed) {
  FakeServer server([](const Request&) {
    return json_answer(
        R"({"file":"/etc/site.yaml","values":[{"key":"api.threads","value":"2",)"
        R"("file":"/etc/site.yaml","line":3,"takes_effect":"START","next_value":"3"},)"
        R"({"key":"api.page_bytes","value":"4M","file":null,"line":null,)"
        R"("takes_effect":"START","next_value":null}]})");
  });
  EXPECT_EQ(call(server, {"config", "show", "--set", "--json"}), 0) << err();
  const Json values = Json::parse(out())["values"];
  ASSERT_EQ(values.size(), 1u);
  EXPECT_EQ(values[0]["next_value"], "3");
  EXPECT_EQ(call(server, {"config", "show"}), 0) << err();
  EXPECT_TRUE(has(out(), "2 (next start: 3)")) << out();
  EXPECT_TRUE(has(out(), "/etc/site.yaml:3")) << out();
  EXPECT_TRUE(has(out(), "default")) << out();
  EXPECT_EQ(server.requests().front(), "GET /v1/configuration");
}

TEST_F(Show, ConfigShowTellsEachValueAndWhereItComesFrom) {
  const std::string folder = testing::TempDir() + "/config_show_test";
  std::filesystem::create_directories(folder);
  const std::string file = folder + "/site.yaml";
  std::ofstream(file) << "include: more.yaml\nscheduling: {max_queue_size: 5}\n";
  std::ofstream(folder + "/more.yaml") << "teams:\n  - name: vision\n    users: [ann]\n";
  EXPECT_EQ(call({"config", "show", file, "--set", "--json"}), 0) << err();
  const Json values = Json::parse(out())["values"];
  ASSERT_EQ(values.size(), 2u) << values;
  EXPECT_EQ(values[0]["key"], "scheduling.max_queue_size");
  EXPECT_EQ(values[0]["value"], "5");
  EXPECT_EQ(values[0]["file"], file);
  EXPECT_EQ(values[0]["line"], 2);
  EXPECT_EQ(values[1]["key"], "teams");
  EXPECT_EQ(values[1]["file"], folder + "/more.yaml");
  EXPECT_EQ(call({"config", "show", file}), 0);
  EXPECT_TRUE(has(out(), "default")) << out();
  EXPECT_TRUE(has(out(), "teams: # " + folder + "/more.yaml:1\n  - name: vision\n")) << out();
  std::ofstream(file) << "scheduling: {max_queue_size: -5}\n";
  EXPECT_EQ(call({"config", "show", file}), 2);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace gpu_platform::cli
