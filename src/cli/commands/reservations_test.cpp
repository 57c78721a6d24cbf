#include <sstream>

#include <gtest/gtest.h>

#include "cli/cli_fixture_test.h"
#include "cli/text/json_view.h"
#include "cli/text/local_clock.h"
#include "cli/text/text.h"

namespace gpu_platform::cli {
namespace {

using Request = FakeServer::Request;

constexpr std::string_view kReservation =
    R"({"name":"course","begin":"2026-01-31T09:00:00.000Z","end":"2026-01-31T17:00:00.000Z","active":false,"maintenance":false,"teams":["red"],"users":["ann"],"nodes":[{"node":"dgx-1","gpus":[0,1],"whole_node":false},{"node":"dgx-2","gpus":[0,1,2,3],"whole_node":true}],"gpu_count":6,"gpus_in_service":6,"let_finish":["12"],"made_by":"root","made_at":"2026-01-30T09:00:00.000Z"})";

class Reservations : public Cli {};

TEST_F(Reservations, CreateSendsWhatWasAskedFor) {
  Json body;
  FakeServer server([&](const Request& request) {
    body = Json::parse(request.body);
    return json_answer(std::string(kReservation));
  });
  EXPECT_EQ(call(server, {"reservations", "create", "course", "--begin", "now", "--duration", "2h",
                          "--team", "red,blue", "--user", "ann", "--nodes", "dgx-[1-2]",
                          "--gpus-per-node", "2", "--ignore-running"}),
            0)
      << err();
  EXPECT_EQ(body["name"], "course");
  EXPECT_FALSE(body.contains("begin"));  // the daemon's own present
  EXPECT_EQ(body["duration_seconds"], 7200.0);
  EXPECT_EQ(body["teams"], Json({"red", "blue"}));
  EXPECT_EQ(body["users"], Json::array({"ann"}));
  EXPECT_EQ(body["nodes"], Json::array({"dgx-[1-2]"}));
  EXPECT_EQ(body["gpus_per_node"], 2);
  EXPECT_EQ(body["ignore_running"], true);
  EXPECT_NE(out().find("6: dgx-1:0-1, dgx-2 (all)"), std::string::npos) << out();
  EXPECT_NE(out().find("team red; user ann"), std::string::npos) << out();
}

TEST_F(Reservations, AMistakeNamesTheOption) {
  FakeServer server([](const Request&) { return json_answer(std::string(kReservation)); });
  EXPECT_EQ(call(server, {"reservations", "create", "w", "--duration", "soon"}), 2);
  EXPECT_NE(err().find("--duration"), std::string::npos) << err();
  EXPECT_EQ(call(server, {"reservations", "create", "w", "--gpus", "0", "--duration", "1h"}), 2);
  EXPECT_EQ(call(server, {"reservations", "describe"}), 2);
}

TEST_F(Reservations, CreateSendsHowItRepeatsItself) {
  Json body;
  FakeServer server([&](const Request& request) {
    body = Json::parse(request.body);
    return json_answer(std::string(kReservation));
  });
  EXPECT_EQ(call(server, {"reservations", "create", "course", "--begin", "2026-01-30T09:00:00Z",
                          "--duration", "2h", "--team", "red", "--gpus", "8", "--repeat",
                          "weekdays", "--count", "10"}),
            0)
      << err();
  EXPECT_EQ(body["repeat"], "WEEKDAYS");
  EXPECT_EQ(body["count"], 10);
  const base::Instant begin(1'769'763'600'000'000'000);
  EXPECT_EQ(body.value("utc_offset_seconds", 0), local_parts(begin).tm_gmtoff);
  EXPECT_EQ(call(server, {"reservations", "create", "course", "--duration", "2h", "--team", "red",
                          "--gpus", "8", "--repeat", "dayly"}),
            2);
  EXPECT_NE(err().find("--repeat"), std::string::npos) << err();
  EXPECT_NE(err().find("daily"), std::string::npos) << err();
}

TEST_F(Reservations, UpdateSendsOnlyWhatIsGiven) {
  Json body;
  std::string target;
  FakeServer server([&](const Request& request) {
    body = Json::parse(request.body);
    target = request.method + " " + request.target;
    return json_answer(std::string(kReservation));
  });
  EXPECT_EQ(call(server, {"reservations", "update", "course", "--skip"}), 0) << err();
  EXPECT_EQ(target, "POST /v1/reservations/course/update");
  EXPECT_EQ(body, Json({{"skip", true}}));
  EXPECT_EQ(call(server, {"reservations", "update", "course", "--duration", "1h", "--repeat",
                          "never", "--user", "ann"}),
            0)
      << err();
  EXPECT_EQ(body["duration_seconds"], 3600);
  EXPECT_EQ(body["repeat"], "NEVER");
  EXPECT_EQ(body["users"], Json::array({"ann"}));
  EXPECT_EQ(body.size(), 3U) << body;
  EXPECT_EQ(call(server, {"reservations", "update", "course"}), 2);
  EXPECT_EQ(call(server, {"reservations", "update", "course", "--begin", "now"}), 2);
}

TEST_F(Reservations, AreShownWithTheirRepeatAndWhatIsInService) {
  Json series = Json::parse(kReservation);
  series["repeat"] = "WEEKLY";
  series["until"] = "2026-06-30T00:00:00.000Z";
  series["next_begins"] = {"2026-02-07T09:00:00.000Z"};
  series["gpus_in_service"] = 2;
  FakeServer server([&](const Request& request) {
    if (request.target.starts_with("/v1/reservations?")) {
      return json_answer(Json({{"reservations", {series}}}).dump());
    }
    return json_answer(series.dump());
  });
  EXPECT_EQ(call(server, {"reservations", "describe", "course"}), 0) << err();
  EXPECT_NE(out().find("Repeat        weekly until 2026-0"), std::string::npos) << out();
  EXPECT_NE(out().find("Next          2026-02-0"), std::string::npos) << out();
  EXPECT_NE(out().find("6 (2 in service)"), std::string::npos) << out();
  EXPECT_EQ(call(server, {"reservations", "list"}), 0) << err();
  EXPECT_NE(out().find("REPEAT"), std::string::npos) << out();
  EXPECT_NE(out().find("weekly until"), std::string::npos) << out();
  for (const std::size_t width : {80, 120, 160}) {
    around_.width = width;
    const std::size_t before = out().size();
    EXPECT_EQ(call(server, {"reservations", "list"}), 0);
    std::istringstream lines(out().substr(before));
    for (std::string line; std::getline(lines, line);)
      EXPECT_LE(display_width(line), width) << line;
    EXPECT_NE(out().find("course", before), std::string::npos) << out();
  }
  EXPECT_EQ(call(server, {"reservations", "list", "--columns", "name,gpus", "--no-headers"}), 0);
  EXPECT_TRUE(out().ends_with("course  6 (2 in service)\n")) << out();
}

TEST_F(Reservations, CancelIsADelete) {
  std::string method;
  FakeServer server([&](const Request& request) {
    method = request.method + " " + request.target;
    return json_answer(std::string(kReservation));
  });
  EXPECT_EQ(call(server, {"reservations", "cancel", "course"}), 0) << err();
  EXPECT_EQ(method, "DELETE /v1/reservations/course");
  EXPECT_EQ(call(server, {"reservations", "delete", "course"}), 0) << err();
  EXPECT_EQ(method, "DELETE /v1/reservations/course");
}

TEST_F(Reservations, ListShowsOneLineForEach) {
  FakeServer server([](const Request&) {
    return json_answer(R"({"reservations":[)" + std::string(kReservation) + "]}");
  });
  EXPECT_EQ(call(server, {"reservations", "list"}), 0) << err();
  EXPECT_NE(out().find("course"), std::string::npos) << out();
}

}  // namespace
}  // namespace gpu_platform::cli
