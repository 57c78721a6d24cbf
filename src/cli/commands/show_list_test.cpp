#include <sstream>

#include "cli/commands/show_fixture.h"
#include "cli/text/json_view.h"
#include "cli/text/text.h"

namespace gpu_platform::cli {
namespace {

using Request = FakeServer::Request;

constexpr std::string_view kRunning =
    R"({"id":"7","state":"RUNNING","spec":{"name":"infer","user":"bob","priority":"HIGH","gpus":1,"nodes":2},"submitted_at":"2026-07-01T12:00:00.000Z","started_at":"2026-07-01T12:00:05.000Z","gpus":[{"node":"dgx-1","index":0},{"node":"dgx-1","index":3}]})";

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

TEST_F(Show, ListHasTheJobsOfAllUsersWithoutEndedOnesAndWithThem) {
  FakeServer server([](const Request&) { return json_answer(R"({"jobs":[]})"); });
  EXPECT_EQ(call(server, {"jobs", "list", "--all-users"}), 0);
  EXPECT_TRUE(begins(server.requests()[0], "GET /v1/jobs?all=true&state=HELD&state=PENDING&"));
  EXPECT_EQ(call(server, {"jobs", "list", "--all-users", "--ended", "--json"}), 0);
  EXPECT_EQ(server.requests()[1], "GET /v1/jobs?ended=true&all=true&limit=10000");
  EXPECT_EQ(call(server, {"jobs", "list", "--all", "--json"}), 0);
  EXPECT_EQ(server.requests()[2], "GET /v1/jobs?all=true&limit=10000");
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

}  // namespace
}  // namespace gpu_platform::cli
