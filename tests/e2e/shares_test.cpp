// Who has used what of theirs, as the daemon counts it.

#include <gtest/gtest.h>

#include "harness.h"

namespace gpu_platform::e2e {
namespace {

std::string own_name() {
  const Finished finished = run_command({"/usr/bin/id", "-un"}, {}, {});
  return finished.out.substr(0, finished.out.find('\n'));
}

const nlohmann::json& share_of(const nlohmann::json& answer, const std::string& user) {
  for (const nlohmann::json& share : answer["shares"]) {
    if (share["user"] == user) return share;
  }
  throw std::runtime_error("no share of " + user);
}

TEST(Shares, GoDownForWhoeverUsesTheCluster) {
  const std::string user = own_name();
  Daemon daemon({.emulate = "dgx-h100",
                 .config = "scheduling:\n  order: fair_share\n  fair_share:\n    interval: 1s\n"
                           "teams:\n  - name: vision\n    shares: 3\n    users: [" +
                           user + ", somebody_else]\n  - name: speech\n    users: [bob]\n"});
  ASSERT_TRUE(daemon.start()) << daemon.log();
  const nlohmann::json before = daemon.json({"shares"});
  EXPECT_EQ(before["counted"], true);
  EXPECT_EQ(share_of(before, user)["place"], 1);
  EXPECT_EQ(share_of(before, "bob")["place"], 1);

  const std::string id = daemon.submit({"--gpus", "8", "--", "/bin/sleep", "1000"});
  ASSERT_TRUE(daemon.reaches(id, "RUNNING"));
  ASSERT_TRUE(eventually([&] { return share_of(daemon.json({"shares"}), user)["place"] == 3; }));
  const nlohmann::json after = daemon.json({"shares"});
  EXPECT_EQ(share_of(after, user)["use"], 1);
  EXPECT_LT(share_of(after, user)["fair_share"], 1);
  EXPECT_EQ(share_of(after, "bob")["place"], 1);
  EXPECT_EQ(share_of(after, "somebody_else")["place"], 2);
  EXPECT_EQ(daemon.json({"shares", "--team", "speech"})["shares"].size(), 2U);
  EXPECT_EQ(daemon.json({"shares", "--user", user})["shares"].size(), 1U);
  EXPECT_NE(daemon.cli({"shares"}).out.find("  vision/"), std::string::npos);
  const Finished unknown = daemon.cli({"shares", "--team", "nobody"});
  EXPECT_NE(unknown.exit_code, 0);
  EXPECT_NE(unknown.err.find("there is no team 'nobody'"), std::string::npos) << unknown.err;

  const auto slurm = [&](std::vector<std::string> words) {
    words.front() = program("slurm-shims") + "/" + words.front();
    return run_command(words, {"GPU_PLATFORM_SERVER=unix:" + daemon.socket()}, {});
  };
  EXPECT_EQ(slurm({"sshare", "-nPU", "-o", "Account,User"}).out, "vision|" + user + "\n");
  EXPECT_EQ(slurm({"sacctmgr", "-nP", "list", "account"}).out, "vision\nspeech\n");
  EXPECT_EQ(slurm({"sacctmgr", "-nP", "list", "assoc", "user=bob"}).out,
            "gpu-platform|speech|bob|1\n");
}

TEST(Shares, AreNotCountedWhereTheOrderDoesNotAsk) {
  Daemon daemon;
  ASSERT_TRUE(daemon.start()) << daemon.log();
  const nlohmann::json answer = daemon.json({"shares"});
  EXPECT_EQ(answer["counted"], false);
  EXPECT_EQ(answer["order"], "priority");
  EXPECT_NE(daemon.cli({"shares"}).out.find("does not ask what was used"), std::string::npos);
}

}  // namespace
}  // namespace gpu_platform::e2e
