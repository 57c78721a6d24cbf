#include <gtest/gtest.h>

#include "harness.h"

// These tests check predicted starts and their scores, through the real program.

namespace gpu_platform::e2e {
namespace {

class Predicting : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(daemon.start()) << daemon.log(); }

  nlohmann::json explain(const std::string& id) { return daemon.json({"jobs", "explain", id}); }
  nlohmann::json score(const std::string& basis) {
    const nlohmann::json status = daemon.json({"status"});
    for (const auto& each : status["prediction_scores"]) {
      if (each["basis"] == basis) return each;
    }
    return {};
  }

  Daemon daemon{DaemonOptions()};
};

TEST_F(Predicting, AJobIsPredictedToRunAsItsLikeDid) {
  // Runs of seconds count for jobs whose limit is a minute.
  const std::vector<std::string> a_nap = {"--gpus", "8",  "--name", "nap",
                                          "--time", "1m", "--",     "/bin/true"};
  for (int i = 0; i < 3; ++i) {
    const std::string nap = daemon.submit(a_nap);
    ASSERT_TRUE(daemon.reaches(nap, "COMPLETED"));
  }
  const std::string first = daemon.submit(
      {"--gpus", "8", "--time", "2h", "--expected-time", "30m", "--", "/bin/sleep", "1000"});
  ASSERT_TRUE(daemon.reaches(first, "RUNNING"));
  EXPECT_NE(daemon.cli({"jobs", "describe", first}).out.find("expected 30m"), std::string::npos);

  const std::string nap = daemon.submit(a_nap);
  const nlohmann::json behind_first = explain(nap);
  EXPECT_EQ(behind_first["predicted_run"]["basis"], "history");
  EXPECT_EQ(behind_first["predicted_run"]["runs"], 3);
  EXPECT_EQ(behind_first["predicted_start"]["basis"], "expected_time");
  EXPECT_LT(behind_first["predicted_start"]["p90"], behind_first["planned_start"]["start"]);
  EXPECT_EQ(behind_first["job"]["forecast"]["after_jobs"], nlohmann::json::array({first}));
  EXPECT_NE(daemon.cli({"jobs", "explain", nap}).out.find("history p50–p90 of 3 runs"),
            std::string::npos);

  const std::string last = daemon.submit({"--gpus", "8", "--name", "last", "--", "/bin/true"});
  EXPECT_EQ(explain(last)["predicted_start"]["basis"], "history");
  EXPECT_EQ(daemon.json({"queue", "--eta"})["jobs"][1]["expected_start"]["basis"], "history");

  EXPECT_EQ(daemon.cli({"jobs", "kill", first}).exit_code, 0);
  ASSERT_TRUE(daemon.reaches(last, "COMPLETED"));
  EXPECT_EQ(score("hard_limits")["starts"], 2);
  EXPECT_EQ(score("hard_limits")["by_then"], 2);
  EXPECT_EQ(score("expected_time")["starts"], 1);
  EXPECT_EQ(score("history")["starts"], 1);
  EXPECT_NE(daemon.cli({"jobs", "explain", last}).out.find("Predicted"), std::string::npos);
}

// It said that it would be gone before the large job can start, and is not.
TEST(LetInByPrediction, WhoIsStillThereIsStoppedForThePlace) {
  DaemonOptions options;
  options.config = "policies:\n  stop_grace: 1s\n";
  Daemon daemon(options);
  ASSERT_TRUE(daemon.start()) << daemon.log();
  const std::string first =
      daemon.submit({"--gpus", "4", "--time", "15s", "--", "/bin/sleep", "1000"});
  ASSERT_TRUE(daemon.reaches(first, "RUNNING"));
  const std::string large = daemon.submit({"--gpus", "8", "--", "/bin/sleep", "1000"});
  const std::string small = daemon.submit({"--gpus", "4", "--time", "1h", "--expected-time", "1s",
                                           "--preemptible", "--", "/bin/sleep", "1000"});
  ASSERT_TRUE(daemon.reaches(small, "RUNNING"));
  EXPECT_EQ(daemon.job(small)["attempts"][0]["passed"], large);
  EXPECT_FALSE(daemon.job(small)["attempts"][0]["yields_at"].is_null());
  EXPECT_NE(daemon.cli({"jobs", "describe", small}).out.find("to job " + large), std::string::npos);
  EXPECT_NE(daemon.cli({"jobs", "explain", small}).out.find("else it is stopped at"),
            std::string::npos);

  ASSERT_TRUE(daemon.reaches(large, "RUNNING"));
  EXPECT_EQ(daemon.job(first)["reason"], "TIME_LIMIT");
  const auto stopped = daemon.job(small);
  EXPECT_EQ(stopped["state"], "QUEUED");
  EXPECT_EQ(stopped["preemptions"], 1);
  EXPECT_EQ(stopped["attempts"][0]["ended_by"], "job " + large);
}

TEST_F(Predicting, MoreThanTheTimeLimitIsRefused) {
  const Finished refused =
      daemon.cli({"submit", "--time", "10m", "--expected-time", "20m", "--", "/bin/true"});
  EXPECT_EQ(refused.exit_code, 2) << refused.err;
  EXPECT_NE(refused.err.find("--expected-time 20m: the time limit is 10m"), std::string::npos)
      << refused.err;
}

}  // namespace
}  // namespace gpu_platform::e2e
