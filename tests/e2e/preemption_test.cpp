#include <gtest/gtest.h>

#include "harness.h"

// A job that is stopped to make room for another, through the real program.

namespace gpu_platform::e2e {
namespace {

DaemonOptions without_delay() {
  DaemonOptions options;
  options.config = "policies:\n  preempt_min_runtime: 0s\n  stop_grace: 20s\n";
  return options;
}

class Preempting : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(daemon.start()) << daemon.log(); }

  std::string submit(std::vector<std::string> arguments) {
    return daemon.submit(std::move(arguments));
  }
  bool reaches(const std::string& id, const std::string& state) {
    return daemon.reaches(id, state);
  }

  Daemon daemon{without_delay()};
};

TEST_F(Preempting, ALowJobGivesWayAndRunsAgain) {
  const std::string low = submit({"--gpus", "8", "--priority", "low", "--", "/bin/sleep", "1000"});
  ASSERT_TRUE(reaches(low, "RUNNING"));
  const Finished asked = daemon.cli({"check", "--gpus", "4", "--priority", "high"});
  EXPECT_NE(asked.out.find("By stopping      job " + low + ", queued again then"),
            std::string::npos)
      << asked.out;
  const std::string high =
      submit({"--gpus", "4", "--priority", "high", "--", "/bin/sleep", "1000"});
  ASSERT_TRUE(reaches(high, "RUNNING"));
  EXPECT_EQ(daemon.job(high)["attempts"][0]["why"], "PREEMPTED");
  EXPECT_EQ(daemon.job(high)["attempts"][0]["preempted_jobs"], nlohmann::json::array({low}));
  const nlohmann::json victim = daemon.job(low);
  EXPECT_EQ(victim["state"], "QUEUED");
  EXPECT_EQ(victim["preemptions"], 1);
  EXPECT_EQ(victim["losses"], 0);
  EXPECT_EQ(victim["attempts"][0]["reason"], "PREEMPTED");
  EXPECT_EQ(victim["attempts"][0]["ended_by"], "job " + high);

  EXPECT_NE(
      daemon.cli({"jobs", "describe", high}).out.find("PREEMPTED others: " + low + " made room"),
      std::string::npos);
  EXPECT_NE(daemon.cli({"jobs", "describe", low}).out.find("PREEMPTED for job " + high),
            std::string::npos);
  EXPECT_EQ(daemon.cli({"jobs", "kill", high}).exit_code, 0);
  EXPECT_TRUE(reaches(low, "RUNNING"));
  EXPECT_EQ(daemon.job(low)["attempt"], 2);
}

TEST_F(Preempting, WhoSaysNoIsNotStopped) {
  const std::string low =
      submit({"--gpus", "8", "--priority", "low", "--no-preemptible", "--", "/bin/sleep", "1000"});
  ASSERT_TRUE(reaches(low, "RUNNING"));
  const std::string high = submit({"--gpus", "4", "--priority", "high", "--", "/bin/true"});
  EXPECT_EQ(daemon.job(low)["spec"]["preemptible"], false);
  EXPECT_TRUE(daemon.job(high)["spec"]["preemptible"].is_null());
  EXPECT_EQ(daemon.job(high)["wait_reason"]["code"], "NO_CAPACITY");
  EXPECT_EQ(daemon.job(low)["state"], "RUNNING");
  const Finished both =
      daemon.cli({"submit", "--preemptible", "--no-preemptible", "--", "/bin/true"});
  EXPECT_EQ(both.exit_code, 2);
  EXPECT_NE(both.err.find("--preemptible"), std::string::npos) << both.err;
}

}  // namespace
}  // namespace gpu_platform::e2e
