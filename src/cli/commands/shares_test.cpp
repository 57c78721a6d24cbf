#include <sstream>

#include <gtest/gtest.h>

#include "cli/cli_fixture_test.h"
#include "cli/text/text.h"

// `shares`.

namespace gpu_platform::cli {
namespace {

class Shares : public Cli {};

constexpr std::string_view kTree =
    R"("shares":[{"team":"","user":"","depth":0,"shares":1,"fair_share":1,"normalized_shares":1},)"
    R"({"team":"vision","depth":1,"shares":3,"use":0.25,"fair_share":0.5,"normalized_shares":0.75},)"
    R"({"team":"vision","user":"ada","depth":2,"shares":1,"place":1,"fair_share":0.5}],)"
    R"("quotas":[{"holder":"team","name":"vision","gpus":8,"max_gpus":16,"guaranteed_gpus":4}]})";

TEST_F(Shares, SayWhatATeamHasOfItsLimitAndItsGuarantee) {
  FakeServer server([](const FakeServer::Request&) {
    return json_answer(R"({"order":"priority","counted":false,)" + std::string(kTree));
  });
  EXPECT_EQ(call(server, {"shares"}), 0);
  EXPECT_TRUE(begins(out(),
                     "scheduling order: priority (usage is not counted)\n"
                     "ACCOUNT    GPUS  GUARANTEED  SHARES\n"
                     "(all)         -           -       1\n"
                     "  vision/  8/16           4       3\n"
                     "    ada       -           -       1\n"))
      << out();
}

TEST_F(Shares, FitTheTerminal) {
  FakeServer server([](const FakeServer::Request&) {
    return json_answer(R"({"order":"fair_share","counted":true,"half_life_seconds":604800,)" +
                       std::string(kTree));
  });
  for (const std::size_t width : {80, 120, 160}) {
    around_.width = width;
    const std::size_t before = out().size();
    EXPECT_EQ(call(server, {"shares"}), 0);
    const std::string text = out().substr(before);
    EXPECT_TRUE(has(text, "8/16") && has(text, "PLACE")) << text;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), width);
  }
}

TEST_F(Shares, HaveTheColumnsAndTheOrderThatAreAskedFor) {
  FakeServer server([](const FakeServer::Request&) {
    return json_answer(R"({"order":"fair_share","counted":true,"half_life_seconds":604800,)" +
                       std::string(kTree));
  });
  EXPECT_EQ(call(server, {"shares", "--columns", "account,shares", "--no-headers", "--sort",
                          "shares:desc"}),
            0)
      << err();
  EXPECT_EQ(out(),
            "vision/  3\n"
            "(all)    1\n"
            "ada      1\n");
  EXPECT_EQ(call(server, {"shares", "--columns", "colour"}), 2);
  EXPECT_TRUE(has(err(), "--columns: there is no column 'colour'; there are account, gpus"))
      << err();
  EXPECT_EQ(call(server, {"shares", "--json", "--sort", "usage"}), 2);
  EXPECT_TRUE(has(err(), "--sort: is for tables")) << err();
}

}  // namespace
}  // namespace gpu_platform::cli
