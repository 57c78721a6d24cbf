#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "cli/cli_fixture_test.h"
#include "cli/text/json_view.h"

namespace gpu_platform::cli {
namespace {

using Request = FakeServer::Request;

constexpr std::string_view kBudget =
    R"({"holder":"team","name":"vision","period":"MONTH","amount":"100.00","currency":"USD","at_limit":"REFUSE","spent":"80.25","left":"19.75","per_hour":"22.00","level":"NEARLY","level_since":"2026-01-30T09:00:00.000Z","period_begin":"2026-01-01T00:00:00.000Z","renews_at":"2026-02-01T00:00:00.000Z","spent_at":"2026-01-31T09:00:00.000Z","bars_starts":false,"set_by":"root","override":null})";

class Budgets : public Cli {};

TEST_F(Budgets, ShowSaysWhatIsSpentAndWhatFollows) {
  std::string target;
  FakeServer server([&](const Request& request) {
    target = request.target;
    return json_answer(std::string(kBudget));
  });
  EXPECT_EQ(call(server, {"budget", "show", "team", "vision"}), 0) << err();
  EXPECT_EQ(target, "/v1/budgets/team/vision");
  for (const std::string_view part : {"100.00 USD for each month", "80.25 USD", "19.75 USD",
                                      "22.00 USD an hour", "nearly", "refuse", "root"}) {
    EXPECT_NE(out().find(part), std::string::npos) << part << "\n" << out();
  }
}

TEST_F(Budgets, SetSendsWhatWasGivenAlone) {
  Json body;
  std::string target;
  FakeServer server([&](const Request& request) {
    target = request.target;
    body = Json::parse(request.body);
    return json_answer(std::string(kBudget));
  });
  EXPECT_EQ(call(server, {"budget", "set", "project", "demo", "--amount", "500.5", "--period",
                          "year", "--at-limit", "stop"}),
            0)
      << err();
  EXPECT_EQ(target, "/v1/budgets/project/demo/update");
  EXPECT_EQ(body["amount"], "500.50");
  EXPECT_EQ(body["period"], "YEAR");
  EXPECT_EQ(body["at_limit"], "STOP");
  EXPECT_EQ(call(server, {"budget", "set", "team", "vision", "--amount", "7"}), 0) << err();
  EXPECT_FALSE(body.contains("period"));
  EXPECT_FALSE(body.contains("at_limit"));
}

TEST_F(Budgets, AMistakeNamesTheWord) {
  FakeServer server([](const Request&) { return json_answer(std::string(kBudget)); });
  EXPECT_EQ(call(server, {"budget", "set", "team", "vision"}), 2);
  EXPECT_NE(err().find("--amount"), std::string::npos) << err();
  EXPECT_EQ(call(server, {"budget", "set", "project", "", "--amount", "5"}), 2);
  EXPECT_NE(err().find("NAME: must not be empty"), std::string::npos) << err();
  EXPECT_EQ(call(server, {"budget", "set", "teem", "vision", "--amount", "5"}), 2);
  EXPECT_NE(err().find("'team'"), std::string::npos) << err();
  EXPECT_EQ(call(server, {"budget", "set", "team", "vision", "--amount", "1.2345678"}), 2);
  EXPECT_NE(err().find("--amount"), std::string::npos) << err();
  EXPECT_EQ(call(server, {"budget", "set", "team", "vision", "--at-limit", "halt"}), 2);
  EXPECT_NE(err().find("--at-limit"), std::string::npos) << err();
  EXPECT_EQ(call(server, {"budget", "override", "team", "vision", "--until", "2h"}), 2);
  EXPECT_NE(err().find("--why"), std::string::npos) << err();
}

TEST_F(Budgets, OverrideSendsWhenAndWhy) {
  Json body;
  FakeServer server([&](const Request& request) {
    body = request.body.empty() ? Json::object() : Json::parse(request.body);
    return json_answer(std::string(kBudget));
  });
  EXPECT_EQ(call(server, {"budget", "override", "team", "vision", "--until", "2099-01-02T00:00:00Z",
                          "--why", "a deadline"}),
            0)
      << err();
  EXPECT_TRUE(body.contains("until"));
  EXPECT_EQ(body["why"], "a deadline");
  EXPECT_EQ(call(server, {"budget", "override", "team", "vision", "--end"}), 0) << err();
  EXPECT_FALSE(body.contains("until"));
}

TEST_F(Budgets, AJobHasOneOfItsOwn) {
  Json body;
  FakeServer server([&](const Request& request) {
    body = Json::parse(request.body);
    return json_answer(
        R"({"id":"42","state":"QUEUED","warnings":["budget 12.50: pays for 1 h 49 min on H100-80GB; the job ends then"]})",
        201);
  });
  EXPECT_EQ(call(server, {"submit", "--gpus", "1", "--budget", "12.5", "--no-check", "--", "x"}), 0)
      << err();
  EXPECT_EQ(body["budget"], "12.5");
  EXPECT_EQ(out(), "42\n");
  EXPECT_NE(err().find("--budget 12.50: pays for 1 h 49 min on H100-80GB"), std::string::npos)
      << err();
}

TEST_F(Budgets, ThatOfAJobIsChangedAndTakenBack) {
  Json body;
  FakeServer server([&](const Request& request) {
    body = Json::parse(request.body);
    return json_answer(R"({"changed":true,"job":{"id":"7","state":"RUNNING"}})");
  });
  EXPECT_EQ(call(server, {"jobs", "update", "7", "--budget", "40"}), 0) << err();
  EXPECT_EQ(body, (Json{{"spec", {{"budget", "40"}}}}));
  EXPECT_EQ(call(server, {"jobs", "update", "7", "--budget", "none"}), 0) << err();
  EXPECT_EQ(body["clear"], Json::array({"budget"}));
}

TEST_F(Budgets, CheckSaysWhenTheJobEnds) {
  FakeServer server([](const Request&) {
    return json_answer(
        R"({"starts_now":true,"notes":["budget 10.00: pays for 1 h 49 min on H100-80GB; the job ends then"]})");
  });
  EXPECT_EQ(call(server, {"check", "--gpus", "1", "--budget", "10", "--", "x"}), 0) << err();
  EXPECT_NE(out().find("--budget 10.00: pays for 1 h 49 min"), std::string::npos) << out();
}

TEST_F(Budgets, ListHasARowForEach) {
  FakeServer server([](const Request&) {
    return json_answer(R"({"budgets":[)" + std::string(kBudget) + R"(],"next_page":null})");
  });
  EXPECT_EQ(call(server, {"budget", "list"}), 0) << err();
  EXPECT_NE(out().find("vision"), std::string::npos) << out();
  EXPECT_NE(out().find("80.25"), std::string::npos) << out();
}

TEST_F(Budgets, ListHasAmountsOfOneForm) {
  FakeServer server([](const Request&) {
    return json_answer(
        R"({"budgets":[{"holder":"team","name":"vision","period":"MONTH","amount":"12000","currency":"USD",
            "spent":"9600.254999","per_hour":"22.00","level":"NEARLY","at_limit":"REFUSE"}],"next_page":null})");
  });
  EXPECT_EQ(call(server, {"budget", "list"}), 0) << err();
  EXPECT_NE(out().find("12,000.00 USD  9,600.25    22.00"), std::string::npos) << out();
}

}  // namespace
}  // namespace gpu_platform::cli
