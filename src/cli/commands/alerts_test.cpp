#include <gtest/gtest.h>

#include "cli/cli_fixture_test.h"
#include "cli/text/json_view.h"

namespace gpu_platform::cli {
namespace {

using Request = FakeServer::Request;

constexpr std::string_view kAlert =
    R"x({"id":"4be1c7e0a1b2c3d4","rule":"GpuHot","severity":"WARNING","state":"FIRING","labels":{"node":"dgx-1","gpu_index":"3"},"summary":"GPU 3 of dgx-1 has 91 °C (limit 85 °C)","advice":"Look at the cooling.","value":"91","since":"2026-07-01T12:00:00.000Z","fired_at":"2026-07-01T12:01:00.000Z","resolved_at":null,"acknowledged_by":"ann","acknowledge_comment":"on my way"})x";
constexpr std::string_view kSilence =
    R"({"id":"3","matchers":{"node":"dgx-1"},"from":"2026-07-01T12:00:00.000Z","until":"2026-07-01T16:00:00.000Z","made_by":"ann","comment":"new memory"})";

class Alerts : public Cli {};

TEST_F(Alerts, ListShowsOneLineForEachAndPassesTheFilters) {
  std::string target;
  FakeServer server([&](const Request& request) {
    target = request.target;
    return json_answer(fmt::format(R"({{"alerts":[{}]}})", kAlert));
  });
  EXPECT_EQ(call(server, {"alerts", "list", "--state", "firing", "--severity", "critical", "--node",
                          "dgx-1"}),
            0)
      << err();
  EXPECT_NE(target.find("states=FIRING"), std::string::npos) << target;
  EXPECT_NE(target.find("severity=CRITICAL"), std::string::npos) << target;
  EXPECT_NE(target.find("node=dgx-1"), std::string::npos) << target;
  EXPECT_NE(out().find("4be1c7e0a1b2c3d4"), std::string::npos) << out();
  EXPECT_NE(out().find("warning"), std::string::npos) << out();
}

TEST_F(Alerts, AListWithoutAlertsIsFine) {
  FakeServer server([](const Request&) { return json_answer(R"({"alerts":[]})"); });
  EXPECT_EQ(call(server, {"alerts", "list"}), 0);
  EXPECT_NE(err().find("there are no alerts"), std::string::npos) << err();
}

TEST_F(Alerts, ShowSaysWhatHelps) {
  std::string target;
  FakeServer server([&](const Request& request) {
    target = request.target;
    return json_answer(std::string(kAlert));
  });
  EXPECT_EQ(call(server, {"alerts", "show", "4be1c7e0a1b2c3d4"}), 0) << err();
  EXPECT_EQ(target, "/v1/alerts/4be1c7e0a1b2c3d4");
  EXPECT_NE(out().find("What helps    Look at the cooling."), std::string::npos) << out();
  EXPECT_NE(out().find("ann: on my way"), std::string::npos) << out();
}

TEST_F(Alerts, SilenceSendsItsMatchersAndItsEnd) {
  Json body;
  FakeServer server([&](const Request& request) {
    EXPECT_EQ(request.method + " " + request.target, "POST /v1/silences");
    body = Json::parse(request.body);
    return json_answer(std::string(kSilence));
  });
  EXPECT_EQ(call(server, {"alerts", "silence", "node=dgx-1", "rule=Gpu*", "--duration", "4h",
                          "--comment", "new memory"}),
            0)
      << err();
  EXPECT_EQ(body["matchers"], (Json{{"node", "dgx-1"}, {"rule", "Gpu*"}}));
  EXPECT_EQ(body["duration_seconds"], 14'400.0);
  EXPECT_EQ(body["comment"], "new memory");
  EXPECT_NE(out().find("node=dgx-1"), std::string::npos) << out();
}

TEST_F(Alerts, AMistakeNamesTheOption) {
  FakeServer server([](const Request&) { return json_answer(std::string(kSilence)); });
  EXPECT_EQ(call(server, {"alerts", "silence", "dgx-1", "--duration", "4h"}), 2);
  EXPECT_NE(err().find("'dgx-1' is no matcher"), std::string::npos) << err();
  EXPECT_EQ(call(server, {"alerts", "silence", "node=dgx-1"}), 2);
  EXPECT_EQ(call(server, {"alerts", "silence", "node=dgx-1", "--duration", "soon"}), 2);
  EXPECT_EQ(call(server, {"alerts", "show"}), 2);
  EXPECT_EQ(call(server, {"alerts", "silence", "node=a", "node=b", "--duration", "4h"}), 2);
  EXPECT_NE(err().find("'node' is given twice"), std::string::npos) << err();
}

TEST_F(Alerts, AnEmptyNameIsNoList) {
  std::size_t requests = 0;
  FakeServer server([&](const Request&) {
    ++requests;
    return json_answer(R"({"alerts":[]})");
  });
  for (const char* const command : {"show", "ack", "end-silence", "test"}) {
    EXPECT_EQ(call(server, {"alerts", command, ""}), 2) << command;
  }
  EXPECT_EQ(requests, 0U);
}

TEST_F(Alerts, AckAndTestPostToTheirObjects) {
  std::vector<std::string> calls;
  FakeServer server([&](const Request& request) {
    calls.push_back(request.method + " " + request.target + " " + request.body);
    return json_answer(request.target.find("channels") == std::string::npos
                           ? std::string(kAlert)
                           : std::string(R"({"name":"chat"})"));
  });
  EXPECT_EQ(call(server, {"alerts", "ack", "4be1c7e0a1b2c3d4", "--comment", "mine"}), 0) << err();
  EXPECT_EQ(call(server, {"alerts", "test", "chat"}), 0) << err();
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_EQ(calls[0], R"(POST /v1/alerts/4be1c7e0a1b2c3d4/acknowledge {"comment":"mine"})");
  EXPECT_EQ(calls[1], "POST /v1/alert_channels/chat/test {}");
}

}  // namespace
}  // namespace gpu_platform::cli
