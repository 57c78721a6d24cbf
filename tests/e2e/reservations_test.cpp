#include <gtest/gtest.h>

#include <unistd.h>

#include "harness.h"

// Reservations through the real program.

namespace gpu_platform::e2e {
namespace {

class Reservations : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "reservations are made by root";
    ASSERT_TRUE(daemon.start()) << daemon.log();
  }
  std::string node() {
    return nlohmann::json::parse(daemon.cli({"status", "--json"}).out)["nodes"][0]["name"];
  }

  Daemon daemon;
};

TEST_F(Reservations, KeepGpusForThoseWhoAreNamedUntilTheyAreCancelled) {
  const auto made = daemon.cli({"reservations", "create", "mine", "--begin", "now", "--duration",
                                "2h", "--user", "root", "--nodes", node(), "--json"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const auto reservation = nlohmann::json::parse(made.out);
  EXPECT_EQ(reservation["active"], true);
  EXPECT_EQ(reservation["nodes"][0]["whole_node"], true);

  const std::string other = daemon.submit({"--gpus", "1", "--time", "1h", "--", "/bin/true"});
  ASSERT_TRUE(eventually([&] { return daemon.job(other)["wait_reason"]["code"] == "RESERVED"; },
                         std::chrono::seconds(60)));
  const std::string inside =
      daemon.submit({"--gpus", "1", "--time", "1h", "--reservation", "mine", "--", "/bin/true"});
  EXPECT_EQ(daemon.cli({"jobs", "wait", inside}).exit_code, 0);
  EXPECT_EQ(daemon.job(inside)["spec"]["reservation"], "mine");

  EXPECT_EQ(daemon
                .cli({"submit", "--gpus", "1", "--time", "3h", "--reservation", "mine", "--",
                      "/bin/true"})
                .exit_code,
            4);
  EXPECT_EQ(daemon.cli({"reservations", "describe", "mine"}).exit_code, 0);
  EXPECT_EQ(daemon
                .cli({"reservations", "create", "ghosts", "--begin", "now+3h", "--duration", "1h",
                      "--user", "no-such-user-here", "--nodes", node()})
                .exit_code,
            3);
  daemon.kill_now();
  ASSERT_TRUE(daemon.start()) << daemon.log();
  const auto list = nlohmann::json::parse(daemon.cli({"reservations", "list", "--json"}).out);
  ASSERT_EQ(list["reservations"].size(), 1U);
  EXPECT_EQ(list["reservations"][0]["name"], "mine");

  EXPECT_EQ(daemon.cli({"reservations", "cancel", "mine"}).exit_code, 0);
  EXPECT_EQ(daemon.cli({"jobs", "wait", other}).exit_code, 0);
  EXPECT_EQ(daemon.cli({"reservations", "describe", "mine"}).exit_code, 3);
}

TEST_F(Reservations, ComeAgainAndAreChangedAndSkippedAcrossAKill) {
  const auto made = daemon.cli({"reservations", "create", "nightly", "--begin", "now+2h",
                                "--duration", "1h", "--repeat", "daily", "--count", "5", "--user",
                                "root", "--nodes", node(), "--json"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const auto first = nlohmann::json::parse(made.out);
  EXPECT_EQ(first["repeat"], "DAILY");
  EXPECT_EQ(first["next_begins"].size(), 3U);
  // Longer than the time to the first, and than any gap.
  const std::string other = daemon.submit({"--gpus", "1", "--time", "24h", "--", "/bin/true"});
  ASSERT_TRUE(eventually([&] { return daemon.job(other)["wait_reason"]["code"] == "RESERVED"; },
                         std::chrono::seconds(60)));
  const auto skipped = daemon.cli({"reservations", "update", "nightly", "--skip", "--json"});
  ASSERT_EQ(skipped.exit_code, 0) << skipped.err;
  EXPECT_EQ(nlohmann::json::parse(skipped.out)["begin"], first["next_begins"][0]);
  // Now it ends before.
  EXPECT_EQ(daemon.cli({"jobs", "wait", other}).exit_code, 0);
  EXPECT_EQ(
      daemon.cli({"reservations", "update", "nightly", "--repeat", "daily", "--duration", "25h"})
          .exit_code,
      4);
  daemon.kill_now();
  ASSERT_TRUE(daemon.start()) << daemon.log();
  const auto again =
      nlohmann::json::parse(daemon.cli({"reservations", "describe", "nightly", "--json"}).out);
  EXPECT_EQ(again["begin"], first["next_begins"][0]);
  EXPECT_EQ(again["gpus_in_service"], again["gpu_count"]);
  EXPECT_EQ(daemon.cli({"reservations", "delete", "nightly"}).exit_code, 0);
}

}  // namespace
}  // namespace gpu_platform::e2e
