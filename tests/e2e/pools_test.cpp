#include <gtest/gtest.h>

#include "harness.h"

// What is guaranteed to a team is lent and taken back, through the real program.

namespace gpu_platform::e2e {
namespace {

DaemonOptions with_teams() {
  DaemonOptions options;
  options.config =
      "policies:\n  stop_grace: 20s\n"
      "teams:\n"
      "  - {name: vision, guaranteed_gpus: 6}\n"
      "  - {name: speech, guaranteed_gpus: 2, borrow_limit: 5}\n";
  return options;
}

class Pools : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(daemon.start()) << daemon.log(); }

  Daemon daemon{with_teams()};
};

TEST_F(Pools, IdleGpusAreLentAndComeBack) {
  const std::string lent = daemon.submit({"--team", "speech", "--gpus", "7", "--priority",
                                          "critical", "--preemptible", "--", "/bin/sleep", "1000"});
  ASSERT_TRUE(daemon.reaches(lent, "RUNNING"));
  EXPECT_EQ(daemon.job(lent)["borrowed"], true);
  EXPECT_NE(daemon.cli({"jobs", "describe", lent}).out.find("borrows GPUs"), std::string::npos);

  const std::string firm = daemon.submit(
      {"--team", "speech", "--gpus", "1", "--no-preemptible", "--", "/bin/sleep", "1"});
  EXPECT_EQ(daemon.job(firm)["wait_reason"]["code"], "QUOTA");
  const std::string why = daemon.job(firm)["wait_reason"]["text"];
  EXPECT_NE(why.find("2 guaranteed"), std::string::npos) << why;
  EXPECT_EQ(daemon.cli({"jobs", "cancel", firm}).exit_code, 0);

  const std::string own = daemon.submit(
      {"--team", "vision", "--gpus", "6", "--priority", "low", "--", "/bin/sleep", "1000"});
  ASSERT_TRUE(daemon.reaches(own, "RUNNING"));
  EXPECT_EQ(daemon.job(own)["attempts"][0]["preempted_jobs"], nlohmann::json::array({lent}));
  EXPECT_EQ(daemon.job(own)["borrowed"], false);
  EXPECT_EQ(daemon.job(lent)["state"], "QUEUED");
  EXPECT_EQ(daemon.job(lent)["preemptions"], 1);
}

TEST_F(Pools, ExplainSaysThatAPreemptibleJobWouldStart) {
  const std::string firm =
      daemon.submit({"--team", "speech", "--gpus", "4", "--", "/bin/sleep", "1000"});
  EXPECT_EQ(daemon.job(firm)["wait_reason"]["code"], "QUOTA");
  const Finished explained = daemon.cli({"jobs", "explain", firm});
  EXPECT_NE(explained.out.find("--preemptible"), std::string::npos) << explained.out;
  const Finished changed = daemon.cli({"jobs", "update", firm, "--preemptible"});
  EXPECT_EQ(changed.exit_code, 0) << changed.err;
  EXPECT_TRUE(daemon.reaches(firm, "RUNNING"));
  const Finished refused = daemon.cli({"jobs", "update", firm, "--no-preemptible"});
  EXPECT_EQ(refused.exit_code, 4) << refused.err;
}

}  // namespace
}  // namespace gpu_platform::e2e
