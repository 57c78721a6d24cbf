#include <gtest/gtest.h>

#include "cli/cli_fixture_test.h"
#include "cli/json_view.h"

namespace gpu_platform::cli {
namespace {

using Request = FakeServer::Request;

constexpr std::string_view kReservation =
    R"({"name":"course","begin":"2026-01-31T09:00:00.000Z","end":"2026-01-31T17:00:00.000Z","active":false,"maintenance":false,"teams":["red"],"users":["ann"],"nodes":[{"node":"dgx-1","gpus":[0,1],"whole_node":false},{"node":"dgx-2","gpus":[0,1,2,3],"whole_node":true}],"gpu_count":6,"let_finish":["12"],"made_by":"root","made_at":"2026-01-30T09:00:00.000Z"})";

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
  EXPECT_NE(out().find("6: dgx-1 (0, 1), dgx-2 (all)"), std::string::npos) << out();
  EXPECT_NE(out().find("team red; user ann"), std::string::npos) << out();
}

TEST_F(Reservations, AMistakeNamesTheOption) {
  FakeServer server([](const Request&) { return json_answer(std::string(kReservation)); });
  EXPECT_EQ(call(server, {"reservations", "create", "w", "--duration", "soon"}), 2);
  EXPECT_NE(err().find("--duration"), std::string::npos) << err();
  EXPECT_EQ(call(server, {"reservations", "create", "w", "--gpus", "0", "--duration", "1h"}), 2);
  EXPECT_EQ(call(server, {"reservations", "describe"}), 2);
}

TEST_F(Reservations, CancelIsADelete) {
  std::string method;
  FakeServer server([&](const Request& request) {
    method = request.method + " " + request.target;
    return json_answer(std::string(kReservation));
  });
  EXPECT_EQ(call(server, {"reservations", "cancel", "course"}), 0) << err();
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
