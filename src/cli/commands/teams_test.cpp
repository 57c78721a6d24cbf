#include <gtest/gtest.h>

#include "cli/cli_fixture_test.h"
#include "cli/text/json_view.h"

namespace gpu_platform::cli {
namespace {

using Request = FakeServer::Request;

constexpr std::string_view kTeam =
    R"({"name":"vision","parent":"lab","shares":2,"members":[{"user":"ann","shares":1},{"user":"bob","shares":2}],"coordinators":["cyd"],"max_gpus":1,"max_running_jobs":null,"max_queued_jobs":null,"gpu_hours":9,"guaranteed_gpus":null,"borrow_limit":null,"lend_limit":null,"over_quota_weight":null,"origin":"CONFIGURATION","origins":[{"key":"parent","origin":"CONFIGURATION","lowered_from":null},{"key":"max_gpus","origin":"RUN_TIME","lowered_from":4},{"key":"gpu_hours","origin":"CONFIGURATION","lowered_from":null}],"hidden":[{"key":"gpu_hours","value":"12"}],"set_by":"root","set_at":"2026-07-01T12:00:00.000Z"})";

class TeamCommands : public Cli {
 protected:
  // The request that these words lead to, as "METHOD TARGET BODY".
  std::string sent(std::vector<std::string> words) {
    std::string request;
    FakeServer server([&](const Request& asked) {
      request = asked.method + " " + asked.target + " " + asked.body;
      return json_answer(std::string(kTeam));
    });
    EXPECT_EQ(call(server, words), 0) << err();
    return request;
  }
};

TEST_F(TeamCommands, SendWhatIsAskedFor) {
  EXPECT_EQ(sent({"team", "create", "vision", "--parent", "lab", "--shares", "2", "--member",
                  "ann,bob:2", "--coordinator", "cyd", "--max-gpus", "4"}),
            R"(POST /v1/teams {"name":"vision","parent":"lab","shares":2,)"
            R"("add_members":[{"user":"ann"},{"user":"bob","shares":2}],)"
            R"("add_coordinators":["cyd"],"max_gpus":4})");
  EXPECT_EQ(sent({"team", "set", "vision", "--parent", "none", "--remove-coordinator", "cyd",
                  "--lend-limit", "0"}),
            R"(POST /v1/teams/vision/update {"must_exist":true,"parent":"",)"
            R"("remove_coordinators":["cyd"],"lend_limit":0})");
  EXPECT_EQ(
      sent({"quota", "set", "vision", "--max-gpus", "none", "--gpu-hours", "7"}),
      R"(POST /v1/teams/vision/update {"must_exist":true,"gpu_hours":7,"clear":["max_gpus"]})");
  EXPECT_EQ(sent({"team", "add-member", "vision", "ann", "bob:3"}),
            R"(POST /v1/teams/vision/update {"must_exist":true,"add_members":[{"user":"ann"},)"
            R"({"user":"bob","shares":3}]})");
  EXPECT_EQ(sent({"team", "add-member", "vision", "ann", "--default"}),
            R"(POST /v1/teams/vision/update {"must_exist":true,)"
            R"("add_members":[{"user":"ann","default_team":true}]})");
  EXPECT_EQ(sent({"team", "accept", "vision"}), "POST /v1/teams/vision/accept {}");
  EXPECT_EQ(sent({"team", "decline", "vision"}), "POST /v1/teams/vision/decline {}");
  EXPECT_EQ(sent({"team", "remove-member", "vision", "ann"}),
            R"(POST /v1/teams/vision/update {"must_exist":true,"remove_members":["ann"]})");
  EXPECT_EQ(sent({"team", "delete", "vision"}), "DELETE /v1/teams/vision ");
  EXPECT_EQ(sent({"team", "show", "vision"}), "GET /v1/teams/vision ");
}

TEST_F(TeamCommands, ShowSaysWhereEachValueComesFrom) {
  sent({"team", "show", "vision"});
  EXPECT_EQ(
      out(),
      "team               vision (configuration)\n"
      "parent             lab (configuration)\n"
      "shares             2\n"
      "members            ann, bob:2\n"
      "coordinators       cyd\n"
      "max_gpus           1 (run time, lowered from 4 by a coordinator)\n"
      "gpu_hours          9 (configuration)\n"
      "hidden             gpu_hours 12, set at run time, has no effect: the configuration sets it\n"
      "changed            2026-07-01 12:00:00 +0000 by root\n");
}

TEST_F(TeamCommands, ListsAreTables) {
  FakeServer server([](const Request& asked) {
    EXPECT_TRUE(asked.target == "/v1/teams" || asked.target == "/v1/teams?limit=10000");
    return json_answer(fmt::format(R"({{"teams":[{},{{"name":"lab","shares":1}}]}})", kTeam));
  });
  EXPECT_EQ(call(server, {"team", "list"}), 0) << err();
  EXPECT_TRUE(has(out(), "vision  lab") && has(out(), "ann, bob:2")) << out();
  EXPECT_EQ(call(server, {"quota", "show"}), 0) << err();
  EXPECT_TRUE(has(out(), "GPU HOURS")) << out();
  EXPECT_EQ(call(server, {"team", "list", "-o", "name"}), 0) << err();
  EXPECT_TRUE(has(out(), "vision\nlab\n")) << out();
  EXPECT_EQ(call(server, {"team", "list", "--sort", "name", "--columns", "name,shares"}), 0);
  EXPECT_TRUE(out().ends_with("lab          1\nvision       2\n")) << out();
}

TEST_F(TeamCommands, TellOfAnInvitation) {
  constexpr std::string_view kInviting =
      R"({"name":"vision","shares":1,"invited":[{"user":"ann","shares":1,"invited_by":"cyd"}],"invites_you":true})";
  FakeServer server([&](const Request& asked) {
    return json_answer(asked.target.starts_with("/v1/teams?")
                           ? fmt::format(R"({{"teams":[{}]}})", kInviting)
                           : std::string(kInviting));
  });
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"team", "list"}, {"team", "show", "vision"}}) {
    EXPECT_EQ(call(server, words), 0) << err();
    EXPECT_TRUE(has(err(), "you are invited to the team vision: 'gpu-platform team accept vision'"))
        << err();
  }
  EXPECT_TRUE(has(out(), "invited            ann (by cyd)\n")) << out();
}

TEST_F(TeamCommands, AMistakeNamesTheOption) {
  FakeServer server([](const Request&) { return json_answer(std::string(kTeam)); });
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{"team", "set", "vision"}, "give at least one change"},
      {{"team", "set", "vision", "--max-gpus", "many"}, "--max-gpus"},
      {{"team", "create", "vision", "--max-gpus", "none"}, "--max-gpus"},
      {{"team", "set", "vision", "--shares", "0"}, "--shares"},
      {{"team", "create", "vision", "--member", "ann:x"}, "--member"},
      {{"team", "add-member", "vision"}, "USER"},
      {{"team", "show"}, "TEAM"},
      {{"quota", "set", "vision", "--shares", "2"}, "--shares"},
  };
  for (const auto& [words, said] : cases) {
    EXPECT_EQ(call(server, words), 2) << said;
    EXPECT_TRUE(has(err(), said)) << said << "\n" << err();
  }
}

}  // namespace
}  // namespace gpu_platform::cli
