#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "cli/cli_fixture_test.h"
#include "cli/json_view.h"
#include "cli/text.h"

// What the commands that only show something print.

namespace gpu_platform::cli {
namespace {

using Request = FakeServer::Request;

constexpr std::string_view kRunning =
    R"({"id":"7","state":"RUNNING","spec":{"name":"infer","user":"bob","priority":"HIGH","gpus":1,"nodes":2},"submitted_at":"2026-07-01T12:00:00.000Z","started_at":"2026-07-01T12:00:05.000Z","gpus":[{"node":"dgx-1","index":0},{"node":"dgx-1","index":3}]})";

class Show : public Cli {
 protected:
  const InUtc zone_;
};

TEST_F(Show, ListHasOneLineForEachJob) {
  FakeServer server([](const Request&) {
    return json_answer(fmt::format(R"({{"jobs":[{},{}],"next_page":null}})", kJob, kRunning));
  });
  EXPECT_EQ(call(server, {"jobs", "list"}), 0);
  EXPECT_EQ(out(),
            "ID  NAME   STATE    GPUS  PRIORITY  SUBMITTED         STARTED           WAITED    "
            "RAN  PLACE OR REASON\n"
            "42  train  QUEUED      8  MEDIUM    2026-07-01 12:00  -                  3m12s      "
            "-  1 node is 4 GPUs short\n"
            " 7  infer  RUNNING     2  HIGH      2026-07-01 12:00  2026-07-01 12:00      5s  "
            "3m07s  dgx-1:0,3\n");
}

TEST_F(Show, ListFitsTheTerminalAndKeepsTheReason) {
  const std::string reason(
      R"("text":"2 of 3 nodes are at least 4 GPUs short, 1 is draining or down; 26 jobs ahead, the first is 15_7")");
  const std::string job = fmt::format(
      R"({{"id":"42","state":"QUEUED","submitted_at":"2026-07-01T12:00:00.000Z","wait_reason":{{"code":"NO_CAPACITY",{}}},"spec":{{"name":"finetune-70b-instruct-v2","user":"ada","priority":"MEDIUM","gpus":8}}}})",
      reason);
  FakeServer server([&](const Request&) {
    return json_answer(fmt::format(R"({{"jobs":[{},{}]}})", job, kRunning));
  });
  const auto shown = [&](std::size_t width) {
    around_.width = width;
    const std::size_t before = out().size();
    EXPECT_EQ(call(server, {"jobs", "list"}), 0);
    const std::string text = out().substr(before);
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(display_width(line), width) << text;
    }
    EXPECT_TRUE(has(text, "15_7")) << "the reason is whole: " << text;
    EXPECT_FALSE(has(text, "\x1b")) << text;
    return text;
  };
  const std::string narrow = shown(80);
  EXPECT_TRUE(has(narrow, "AGE")) << narrow;
  EXPECT_FALSE(has(narrow, "SUBMITTED")) << narrow;
  EXPECT_TRUE(has(shown(120), "SUBMITTED")) << shown(120);
  EXPECT_TRUE(has(shown(160), "PRIORITY")) << shown(160);
}

TEST_F(Show, ListColorsStatesOnATerminalUnlessNoColorIsWanted) {
  FakeServer server(
      [](const Request&) { return json_answer(fmt::format(R"({{"jobs":[{}]}})", kRunning)); });
  around_.width = 80;
  around_.environment.push_back("TERM=xterm");
  EXPECT_EQ(call(server, {"jobs", "list"}), 0);
  EXPECT_TRUE(has(out(), "\x1b[32mRUNNING\x1b[0m")) << out();
  const std::size_t before = out().size();
  around_.environment.push_back("NO_COLOR=1");
  EXPECT_EQ(call(server, {"jobs", "list"}), 0);
  EXPECT_FALSE(has(out().substr(before), "\x1b")) << out();
}

TEST_F(Show, ListHasTheUsersWhereTheyMayDiffer) {
  FakeServer server([](const Request& request) {
    if (has(request.target, "/v1/whoami")) return json_answer(R"({"user":"bob"})");
    const std::string other = has(request.target, "user=") ? "" : std::string(kJob) + ",";
    return json_answer(fmt::format(R"({{"jobs":[{}{}]}})", other, kRunning));
  });
  EXPECT_EQ(call(server, {"jobs", "list", "--all"}), 0);
  EXPECT_TRUE(has(out(), "NAME   USER  STATE")) << out();
  const std::size_t before = out().size();
  EXPECT_EQ(call(server, {"jobs", "list", "--user", "bob"}), 0);
  EXPECT_FALSE(has(out().substr(before), "USER")) << "all are the caller's: " << out();
}

TEST_F(Show, ListFoldsTheWaitingMembersOfAnArray) {
  const auto member = [](int index, std::string_view state, int ahead) {
    return fmt::format(
        R"({{"id":"{}","array_id":"15","array_index":{},"state":"{}","wait_reason":{{"code":"PRIORITY","text":"{} jobs ahead","counts":{{"jobs_ahead":{}}}}},"spec":{{"name":"sweep","gpus":1}}}})",
        15 + index, index, state, ahead, ahead);
  };
  FakeServer server([&](const Request&) {
    return json_answer(fmt::format(R"({{"jobs":[{},{},{},{}]}})", member(4, "QUEUED", 3),
                                   member(3, "HELD", 9), member(2, "QUEUED", 2),
                                   member(1, "QUEUED", 1)));
  });
  EXPECT_EQ(call(server, {"jobs", "list", "--columns", "id,state,reason"}), 0);
  EXPECT_EQ(out(),
            "        ID  STATE   PLACE OR REASON\n"
            "15_[1-2,4]  QUEUED  1 jobs ahead\n"
            "      15_3  HELD    9 jobs ahead\n");
  const std::size_t before = out().size();
  EXPECT_EQ(call(server, {"jobs", "list", "-r", "--columns", "id", "--no-headers"}), 0);
  EXPECT_EQ(out().substr(before), "15_4\n15_3\n15_2\n15_1\n");
}

TEST_F(Show, ListSortsByAnyColumn) {
  FakeServer server([](const Request&) {
    return json_answer(
        R"({"jobs":[{"id":"9","spec":{"name":"n10","gpus":1}},{"id":"7","spec":{"name":"n9","gpus":8}},{"id":"8","spec":{"name":"a","gpus":4}}]})");
  });
  const auto sorted = [&](const std::string& by) {
    const std::size_t before = out().size();
    EXPECT_EQ(call(server, {"jobs", "list", "--sort", by, "--columns", "id", "--no-headers"}), 0);
    return out().substr(before);
  };
  EXPECT_EQ(sorted("id"), "7\n8\n9\n");
  EXPECT_EQ(sorted("name"), "8\n7\n9\n");
  EXPECT_EQ(sorted("gpus:desc"), "7\n8\n9\n");
  EXPECT_EQ(call(server, {"jobs", "list", "--sort", "color"}), 2);
  EXPECT_TRUE(has(err(), "--sort: there is no column 'color'; there are id, name")) << err();
  EXPECT_EQ(call(server, {"jobs", "list", "--sort", "id", "--json"}), 2);
  EXPECT_TRUE(has(err(), "--sort: is for tables")) << err();
}

TEST_F(Show, ListAsksForNamesNodesAndThePast) {
  FakeServer server([](const Request&) { return json_answer(R"({"jobs":[]})"); });
  EXPECT_EQ(call(server, {"jobs", "list", "--name", "train-*", "--node", "dgx-1", "--until", "1h"}),
            0);
  EXPECT_EQ(server.requests()[0],
            "GET /v1/jobs?node=dgx-1&until=2026-07-01T11%3A03%3A12.000Z&name_pattern=train-%2A&"
            "ended=true&limit=10000");
  EXPECT_TRUE(has(err(), "no jobs match")) << err();
  EXPECT_EQ(call(server, {"jobs", "list", "--name", "train", "--json"}), 0);
  EXPECT_EQ(server.requests()[1], "GET /v1/jobs?name=train&limit=10000");
}

TEST_F(Show, ListOfNothingSaysWhatHasEndedJustNow) {
  FakeServer server([](const Request& request) {
    return json_answer(has(request.target, "ended=true") ? R"({"jobs":[{"id":"3"},{"id":"2"}]})"
                                                         : R"({"jobs":[]})");
  });
  EXPECT_EQ(call(server, {"jobs", "list"}), 0);
  EXPECT_EQ(out(), "");
  EXPECT_TRUE(has(err(),
                  "you have no waiting or running jobs; 2 ended in the last hour: gpu-platform "
                  "jobs list --all"))
      << err();
}

TEST_F(Show, WaitedLeavesOutTheTimeThatAnAttemptRan) {
  FakeServer server([](const Request&) {
    return json_answer(
        R"({"id":"8","state":"RUNNING","submitted_at":"2026-07-01T12:00:00Z","started_at":"2026-07-01T12:01:20Z","attempts":[)"
        R"({"attempt":1,"started_at":"2026-07-01T12:00:03Z","ended_at":"2026-07-01T12:01:20Z"},)"
        R"({"attempt":2,"started_at":"2026-07-01T12:01:20Z"}]})");
  });
  EXPECT_EQ(call(server, {"jobs", "describe", "8"}), 0);
  EXPECT_TRUE(has(out(), "Waited:         3s\n")) << out();
}

TEST_F(Show, TimesInReasonsAreLocalOnes) {
  FakeServer server([](const Request&) {
    return json_answer(
        R"({"id":"8","state":"PENDING","wait_reason":{"text":"starts no earlier than 2026-07-01T23:35:45Z"}})");
  });
  EXPECT_EQ(call(server, {"jobs", "describe", "8"}), 0);
  EXPECT_TRUE(has(out(), "starts no earlier than 2026-07-01 23:35:45 +0000\n")) << out();
}

TEST_F(Show, WhatANewerDaemonSaysIsShownAsItSaysIt) {
  FakeServer server([](const Request&) {
    return json_answer(R"({"id":"7","state":"HIBERNATING","moon":{"phase":1},"reason":"FULL_MOON",)"
                       R"("spec":{"name":"infer","labels":{"b":"2","a":"1"},"kind":"DREAM"}})");
  });
  EXPECT_EQ(call(server, {"jobs", "describe", "7"}), 0);
  EXPECT_TRUE(has(out(), "State:          HIBERNATING\n")) << out();
  EXPECT_TRUE(has(out(), "Kind:           DREAM\n")) << out();
  EXPECT_TRUE(has(out(), "Labels:         a=1 b=2\n")) << out();
  EXPECT_TRUE(has(out(), "Doing:          FULL_MOON\n")) << out();
}

TEST_F(Show, WideListHasMoreColumnsAndCutsNothing) {
  FakeServer server([](const Request&) {
    return json_answer(
        R"({"jobs":[{"id":"7","state":"RUNNING","spec":{"name":"infer","user":"bob","team":"vision"}}]})");
  });
  around_.width = 40;
  EXPECT_EQ(call(server, {"jobs", "list", "-o", "wide"}), 0);
  EXPECT_TRUE(has(out(), "RAN  TEAM    PROJECT")) << out();
  EXPECT_TRUE(has(out(), "-  vision  -")) << out();
}

TEST_F(Show, ListHasTheFormatsOfKubectl) {
  FakeServer server([](const Request&) {
    return json_answer(R"({"jobs":[{"id":"7"},{"id":"6"}],"next_page":null})");
  });
  EXPECT_EQ(call(server, {"jobs", "list", "-o", "name"}), 0);
  EXPECT_EQ(out(), "7\n6\n");
  EXPECT_EQ(call(server, {"jobs", "list", "-o", "json"}), 0);
  EXPECT_TRUE(has(out(), R"({"jobs":[{"id":"7"},{"id":"6"}],"next_page":null})")) << out();
  EXPECT_EQ(call(server, {"jobs", "list", "-o", "narrow"}), 2);
  EXPECT_TRUE(has(err(), "--output: must be table, wide, json, yaml or name, not 'narrow'"))
      << err();
  EXPECT_EQ(call(server, {"jobs", "list", "-o", "wide", "--json"}), 2);
  EXPECT_TRUE(has(err(), "'wide' and --json exclude each other")) << err();
}

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

TEST_F(Show, ListSaysOnStderrThatThereIsNothing) {
  FakeServer server([](const Request&) { return json_answer(R"({"jobs":[],"next_page":null})"); });
  EXPECT_EQ(call(server, {"jobs", "list"}), 0);
  EXPECT_EQ(out(), "");
  EXPECT_TRUE(has(err(), "you have no waiting or running jobs")) << err();
}

TEST_F(Show, ListSendsItsFiltersAndFetchesAllPages) {
  FakeServer server([](const Request& request) {
    return has(request.target, "page_token=p2")
               ? json_answer(R"({"jobs":[{"id":"1"}],"next_page":null})")
               : json_answer(R"({"jobs":[{"id":"3"},{"id":"2"}],"next_page":"p2"})");
  });
  EXPECT_EQ(call(server, {"jobs", "list", "--all", "--user", "ada", "--state", "running,failed",
                          "--label", "a=b", "--since", "2h", "--json"}),
            0);
  const Json document = Json::parse(out());
  ASSERT_EQ(document["jobs"].size(), 3U);
  EXPECT_EQ(document["jobs"][2]["id"], "1");
  EXPECT_TRUE(document["next_page"].is_null());
  EXPECT_EQ(
      server.requests()[0],
      "GET "
      "/v1/jobs?user=ada&state=RUNNING&state=FAILED&label=a%3Db&since=2026-07-01T10%3A03%3A12.000Z"
      "&all=true&limit=10000");
  EXPECT_EQ(server.requests().size(), 2U);
}

TEST_F(Show, ListStopsAtItsLimitAndSaysWhereToGoOn) {
  FakeServer server([](const Request&) {
    return json_answer(R"({"jobs":[{"id":"3"},{"id":"2"}],"next_page":"p2"})");
  });
  EXPECT_EQ(call(server, {"jobs", "list", "--limit", "2", "--json"}), 0);
  EXPECT_EQ(out(), "{\"jobs\":[{\"id\":\"3\"},{\"id\":\"2\"}],\"next_page\":\"p2\"}\n");
  EXPECT_EQ(server.requests(), std::vector<std::string>{"GET /v1/jobs?limit=2"});
}

TEST_F(Show, ListOfNothingIsStillADocument) {
  FakeServer server([](const Request&) { return json_answer(R"({"jobs":[],"next_page":null})"); });
  EXPECT_EQ(call(server, {"jobs", "list", "--json"}), 0);
  EXPECT_EQ(out(), "{\"jobs\":[],\"next_page\":null}\n");
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
    return json_answer(R"({"id":"42","spec":{"memory_bytes":104857600,"time_limit_seconds":3600},)"
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
  end = R"("state":"FAILED","exit_code":1)";
  EXPECT_EQ(call(server, {"jobs", "describe", "42"}), 0);
  EXPECT_FALSE(has(out(), "Advice")) << out();
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
    EXPECT_TRUE(has(out().substr(before), "15_3")) << out();
  }
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
