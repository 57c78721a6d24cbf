#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "cli/commands/show_fixture.h"
#include "cli/text/json_view.h"

namespace gpu_platform::cli {
namespace {

using Request = FakeServer::Request;

constexpr std::string_view kPriceList = R"({
  "prices":[
    {"id":1,"gpu_type":"H100","capacity":"","node":"","per_gpu_hour":"5.50","from":"2026-06-01T00:00:00.000Z",
     "until":null,"set_by":null,"derived_from":null},
    {"id":2,"gpu_type":"H100","capacity":"spot","node":"","per_gpu_hour":"1.65","from":"2026-06-01T00:00:00.000Z",
     "until":null,"set_by":null,"derived_from":1},
    {"id":3,"gpu_type":"","capacity":"","node":"attic-*","per_gpu_hour":"0.05","from":"2026-06-20T08:00:00.000Z",
     "until":"2027-01-01T00:00:00.000Z","set_by":"root","derived_from":null}],
  "currency":"EUR","unpriced":["X1"]
})";

constexpr std::string_view kOnePrice =
    R"({"id":12,"gpu_type":"H100","capacity":"","node":"","per_gpu_hour":"4.90"})";

// What was asked last.
struct Asked {
  std::string method;
  std::string target;
  Json body;
};

class PriceCommands : public Show {
 protected:
  int ask(std::string_view answer, std::vector<std::string> words) {
    FakeServer server([&](const Request& request) {
      asked_.method = request.method;
      asked_.target = request.target;
      asked_.body = request.body.empty() ? Json() : Json::parse(request.body);
      return json_answer(std::string(answer));
    });
    return call(server, std::move(words));
  }

  Asked asked_;
};

TEST_F(PriceCommands, ListSaysWhereAPriceComesFromAndWhatHasNone) {
  EXPECT_EQ(ask(kPriceList, {"prices", "list"}), 0) << err();
  EXPECT_EQ(asked_.target, "/v1/prices");
  for (const std::string_view part : {"EUR/HOUR", "5.50", "configuration", "from price 1", "all",
                                      "attic-*", "2027-01-01", "root"}) {
    EXPECT_TRUE(has(out(), part)) << part << "\n" << out();
  }
  EXPECT_TRUE(has(err(), "X1 has no price")) << err();
}

TEST_F(PriceCommands, ListAsksForWhatCountedThen) {
  EXPECT_EQ(ask(kPriceList, {"prices", "list", "--at", "2026-06-15"}), 0) << err();
  EXPECT_TRUE(begins(asked_.target, "/v1/prices?at=2026-06-15T00")) << asked_.target;
  EXPECT_EQ(ask(kPriceList, {"prices", "list", "--at", "7d"}), 0) << err();
  EXPECT_TRUE(begins(asked_.target, "/v1/prices?at=2026-06-24T12")) << asked_.target;
  EXPECT_EQ(ask(kPriceList, {"prices", "list", "--at", "2026-02-30"}), 2);
  EXPECT_TRUE(has(err(), "--at")) << err();
}

TEST_F(PriceCommands, SetSendsWhatWasGiven) {
  EXPECT_EQ(ask(kOnePrice, {"prices", "set", "4.9", "--gpu-type", "H100"}), 0) << err();
  EXPECT_EQ(asked_.method + " " + asked_.target, "POST /v1/prices");
  EXPECT_EQ(asked_.body["gpu_type"], "H100");
  EXPECT_EQ(asked_.body["per_gpu_hour"], "4.90");
  EXPECT_FALSE(asked_.body.contains("from"));
  EXPECT_TRUE(has(out(), "price 12 is set")) << out();
  EXPECT_EQ(ask(kOnePrice, {"prices", "set", "1.65", "--node", "dgx-a*", "--capacity", "spot",
                            "--from", "2027-01-01", "--until", "2028-02-29"}),
            0)
      << err();
  EXPECT_EQ(asked_.body["node"], "dgx-a*");
  EXPECT_EQ(asked_.body["capacity"], "spot");
  EXPECT_TRUE(begins(asked_.body["from"].get<std::string>(), "2027-01-01T00:00:00"));
  EXPECT_TRUE(begins(asked_.body["until"].get<std::string>(), "2028-02-29T00:00:00"));
}

TEST_F(PriceCommands, WithdrawNamesThePrice) {
  EXPECT_EQ(ask(kOnePrice, {"prices", "withdraw", "12"}), 0) << err();
  EXPECT_EQ(asked_.method + " " + asked_.target, "DELETE /v1/prices/12");
  EXPECT_TRUE(has(out(), "price 12 is withdrawn")) << out();
}

TEST_F(PriceCommands, InstancesAreATable) {
  EXPECT_EQ(
      ask(R"({"instances":[{"name":"p5.48xlarge","provider":"aws","gpu_type":"H100-80GB","gpus":8}]})",
          {"prices", "instances"}),
      0)
      << err();
  EXPECT_EQ(asked_.target, "/v1/instances");
  EXPECT_TRUE(has(out(), "p5.48xlarge")) << out();
  EXPECT_TRUE(has(out(), "H100-80GB")) << out();
}

TEST_F(PriceCommands, ACorrectionSaysForWhatAndWhy) {
  constexpr std::string_view kMade =
      R"({"user":"ann","team":"","project":"","amount":"-12.50","text":"x"})";
  EXPECT_EQ(ask(kMade, {"usage", "correct", "--user", "ann", "--text", "the filer was down", "--",
                        "-12.5"}),
            0)
      << err();
  EXPECT_EQ(asked_.method + " " + asked_.target, "POST /v1/ledger/corrections");
  EXPECT_EQ(asked_.body["amount"], "-12.50");
  EXPECT_EQ(asked_.body["user"], "ann");
  EXPECT_EQ(asked_.body["text"], "the filer was down");
  EXPECT_FALSE(asked_.body.contains("team"));
  EXPECT_TRUE(has(out(), "-12.50")) << out();
}

// They are found before the daemon is asked.
TEST_F(PriceCommands, AMistakeNamesTheWord) {
  const std::pair<std::vector<std::string>, std::string_view> cases[] = {
      {{"prices", "set", "free", "--gpu-type", "H100"}, "PRICE"},
      {{"prices", "set", "0.1234567", "--gpu-type", "H100"}, "PRICE"},
      {{"prices", "set", "5,50", "--gpu-type", "H100"}, "PRICE"},
      {{"prices", "set", "--gpu-type", "H100", "--", "-5"}, "PRICE"},
      {{"prices", "set", "5", "--gpu-type", "H100", "--until", "2027-02-29"}, "--until"},
      {{"prices", "set", "5", "--gpu-type", "\xff"}, "--gpu-type"},
      {{"prices", "withdraw", "0"}, "ID"},
      {{"prices", "withdraw", "H100"}, "ID"},
      {{"usage", "correct", "ten", "--user", "ann", "--text", "x"}, "AMOUNT"},
      {{"usage", "correct", "10", "--user", "ann"}, "--text"},
  };
  for (const auto& [words, named] : cases) {
    asked_ = {};
    EXPECT_EQ(ask(kOnePrice, words), 2) << named;
    EXPECT_TRUE(has(err(), named)) << named << "\n" << err();
    EXPECT_EQ(asked_.target, "") << named;
  }
}

TEST_F(PriceCommands, ARefusalIsReportedWithItsText) {
  FakeServer server([](const Request&) {
    return json_answer(
        R"({"code":"PERMISSION_DENIED","status":403,"detail":"user ada may not set prices"})", 403);
  });
  EXPECT_NE(call(server, {"prices", "set", "5", "--gpu-type", "H100"}), 0);
  EXPECT_TRUE(has(err(), "may not set prices")) << err();
  EXPECT_EQ(out(), "");
}

}  // namespace
}  // namespace gpu_platform::cli
