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
  const Finished unknown = daemon.cli({"shares", "--team", "backup"});
  EXPECT_NE(unknown.exit_code, 0);
  EXPECT_NE(unknown.err.find("there is no team 'backup'"), std::string::npos) << unknown.err;

  const auto slurm = [&](std::vector<std::string> words) {
    words.front() = program("slurm-shims") + "/" + words.front();
    return run_command(words, {"GPU_PLATFORM_SERVER=unix:" + daemon.socket()}, {});
  };
  EXPECT_EQ(slurm({"sshare", "-nPU", "-o", "Account,User"}).out, "vision|" + user + "\n");
  EXPECT_EQ(slurm({"sacctmgr", "-nP", "list", "account", "format=account"}).out,
            "root\nspeech\nvision\n");
  EXPECT_EQ(
      slurm({"sacctmgr", "-nP", "list", "assoc", "user=bob", "format=cluster,account,user,share"})
          .out,
      "gpu-platform|speech|bob|1\n");
}

const nlohmann::json& quota_of(const nlohmann::json& answer, const std::string& name,
                               const std::string& type) {
  for (const nlohmann::json& quota : answer["quotas"]) {
    if (quota["name"] == name && quota["gpu_type"] == type) return quota;
  }
  throw std::runtime_error("no quota of " + name);
}

TEST(Shares, ComeWithLimitsGuaranteesAndUseByType) {
  const std::string user = own_name();
  Daemon daemon(
      {.emulate = "dgx-h100,dgx-a100",
       .config = "teams:\n  - name: vision\n    users: [" + user +
                 "]\n    max_gpus: 12\n    guaranteed_gpus: 6\n    gpu_types: {H100: "
                 "{max_gpus: 8, guaranteed_gpus: 4, lend_limit: 2}}\n"
                 "  - name: speech\n    users: [bob]\n    gpu_types: {A100: {max_gpus: 3}}\n"
                 "quotas:\n  user_default: {max_running_jobs: 5}\n"});
  ASSERT_TRUE(daemon.start()) << daemon.log();
  const std::string id =
      daemon.submit({"--gpus", "3", "--gpu-type", "H100", "--", "/bin/sleep", "1000"});
  ASSERT_TRUE(daemon.reaches(id, "RUNNING"));
  const nlohmann::json answer = daemon.json({"shares"});
  const nlohmann::json h100 = quota_of(answer, "vision", "H100");
  EXPECT_EQ(h100["holder"], "team");
  EXPECT_EQ(h100["gpus"], 3);
  EXPECT_EQ(h100["max_gpus"], 8);
  EXPECT_EQ(h100["guaranteed_gpus"], 4);
  EXPECT_EQ(h100["lend_limit"], 2);
  EXPECT_EQ(h100["borrow_limit"], nullptr);
  EXPECT_EQ(h100["running_jobs"], nullptr);
  const nlohmann::json all = quota_of(answer, "vision", "");
  EXPECT_EQ(all["gpus"], 3);
  EXPECT_EQ(all["guaranteed_gpus"], 6);
  EXPECT_EQ(all["running_jobs"], 1);
  EXPECT_EQ(all["gpu_hours"], nullptr);
  EXPECT_EQ(quota_of(answer, "speech", "A100")["gpus"], 0);
  EXPECT_EQ(quota_of(answer, user, "")["max_running_jobs"], 5);
  EXPECT_EQ(daemon.json({"shares", "--team", "speech"})["quotas"].size(), 2U);
  const std::string page = daemon.cli({"shares"}).out;
  EXPECT_NE(page.find("3 of 8"), std::string::npos) << page;
  const std::vector<std::string> words = {program("slurm-shims") + "/sacctmgr", "-nP", "list",
                                          "assoc", "format=account,user,grptres"};
  const Finished slurm = run_command(words, {"GPU_PLATFORM_SERVER=unix:" + daemon.socket()}, {});
  EXPECT_NE(slurm.out.find("vision||gres/gpu=12,gres/gpu:h100=8\n"), std::string::npos)
      << slurm.out;
  EXPECT_NE(slurm.out.find("speech||gres/gpu:a100=3\n"), std::string::npos) << slurm.out;
}

TEST(Shares, ShowGpuHoursByTypeToUsersOfBothCommandLines) {
  const std::string user = own_name();
  Daemon daemon({.emulate = "dgx-h100,dgx-a100",
                 .config = "scheduling:\n  order: fair_share\n  fair_share:\n    interval: 1s\n"
                           "teams:\n  - name: vision\n    shares: 3\n    users: [" +
                           user +
                           ", dan]\n    gpu_hours: 100\n    gpu_types: {H100: {gpu_hours: "
                           "4}}\n  - name: speech\n    users: [bob]\n"});
  ASSERT_TRUE(daemon.start()) << daemon.log();
  const std::string id = daemon.submit(
      {"--gpus", "2", "--gpu-type", "H100", "--time", "1h", "--", "/bin/sleep", "1000"});
  ASSERT_TRUE(daemon.reaches(id, "RUNNING"));
  const std::string late = daemon.submit(
      {"--gpus", "2", "--gpu-type", "H100", "--time", "90m", "--", "/bin/sleep", "1000"});
  const std::string reason =
      "team vision has used or may still use 2 H100 GPU-hours of this period and this job may use "
      "3 more; the limit is 4 (gpu_types.H100.gpu_hours)";
  EXPECT_NE(daemon.job(late)["wait_reason"].dump().find(reason), std::string::npos)
      << daemon.job(late)["wait_reason"];
  EXPECT_NE(daemon.cli({"jobs", "explain", late}).out.find(reason), std::string::npos);
  const Finished checked = daemon.cli(
      {"check", "--gpus", "2", "--gpu-type", "H100", "--time", "90m", "--", "/bin/true"});
  EXPECT_NE(checked.out.find(reason), std::string::npos) << checked.out << checked.err;
  EXPECT_EQ(daemon.cli({"jobs", "update", late, "--time", "1h"}).exit_code, 0);
  ASSERT_TRUE(daemon.reaches(late, "RUNNING")) << "two and two are four";

  const nlohmann::json answer = daemon.json({"shares"});
  EXPECT_EQ(quota_of(answer, "vision", "H100")["gpu_hours"], 4);
  EXPECT_EQ(quota_of(answer, "vision", "H100")["gpu_hours_committed"], 4);
  EXPECT_EQ(quota_of(answer, "vision", "")["gpu_hours_committed"], 4);
  const nlohmann::json& running = share_of(answer, user)["running"];
  ASSERT_EQ(running.size(), 1U) << answer;
  EXPECT_EQ(running[0]["gpu_type"], "H100-80GB");
  EXPECT_LE(running[0]["gpu_seconds"], 4 * 3600);
  EXPECT_GT(running[0]["gpu_seconds"], 3 * 3600);
  EXPECT_NE(daemon.cli({"shares"}).out.find("4 of 4"), std::string::npos);

  const auto slurm = [&](std::vector<std::string> words) {
    words.front() = program("slurm-shims") + "/" + words.front();
    return run_command(words, {"GPU_PLATFORM_SERVER=unix:" + daemon.socket()}, {}).out;
  };
  EXPECT_EQ(slurm({"sacctmgr", "-nP", "show", "assoc", "account=vision",
                   "user=", "format=account,user,grptresmins"}),
            "vision||gres/gpu=6000,gres/gpu:h100=240\n");
  ASSERT_TRUE(eventually([&] {
    const std::string usage = slurm({"sshare", "-nPU", "-o", "RawUsage"});
    return !usage.empty() && std::stoi(usage) >= 4;
  })) << "four GPUs for a second";
  const std::string shown =
      slurm({"sshare", "-nPa", "-o",
             "Account,User,NormShares,NormUsage,EffectvUsage,FairShare,GrpTRESMins"});
  EXPECT_NE(shown.find("vision||0.750000|1.000000|1.000000||gres/gpu=6000,gres/gpu:h100=240\n"),
            std::string::npos)
      << shown;
  EXPECT_NE(shown.find("vision|" + user + "|0.500000|1.000000|1.000000|0.333333|\n"),
            std::string::npos)
      << shown;
  EXPECT_NE(shown.find("speech|bob|1.000000|0.000000|0.000000|1.000000|\n"), std::string::npos)
      << shown;
  const std::string running_minutes = slurm({"sshare", "-nPU", "-o", "TRESRunMins"});
  // Four H100s for up to an hour at 5.50.
  EXPECT_TRUE(running_minutes.starts_with("billing=1")) << running_minutes;
  EXPECT_NE(running_minutes.find(",gres/gpu=2"), std::string::npos) << running_minutes;
  EXPECT_NE(running_minutes.find(",gres/gpu:h100-80gb=2"), std::string::npos) << running_minutes;
  EXPECT_NE(slurm({"sshare", "-l"}).find("gres/gpu=6000,gres/gpu:h100"), std::string::npos);
}

TEST(Shares, AreNotCountedWhereTheOrderDoesNotAsk) {
  Daemon daemon;
  ASSERT_TRUE(daemon.start()) << daemon.log();
  const nlohmann::json answer = daemon.json({"shares"});
  EXPECT_EQ(answer["counted"], false);
  EXPECT_EQ(answer["order"], "priority");
  EXPECT_NE(daemon.cli({"shares"}).out.find("usage is not counted"), std::string::npos);
}

}  // namespace
}  // namespace gpu_platform::e2e
