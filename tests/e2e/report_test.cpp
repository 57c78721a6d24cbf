// Reports about a time, through the command line.

#include <gtest/gtest.h>

#include "harness.h"

namespace gpu_platform::e2e {
namespace {

class Report : public testing::Test {
 protected:
  void SetUp() override {
    daemon_.emplace(DaemonOptions{.data_dir = directory_.path() + "/data"});
    ASSERT_TRUE(daemon_->start()) << daemon_->log();
  }
  // The key figures once so many jobs are in them; after a start that takes a moment.
  nlohmann::json figures_with(std::uint64_t ended_jobs) const {
    nlohmann::json figures;
    EXPECT_TRUE(eventually([&] {
      const Finished asked = daemon_->cli({"report", "kpi", "--since", "1d", "--json"});
      figures = nlohmann::json::parse(asked.out, nullptr, false);
      return asked.exit_code == 0 && figures.is_object() && figures["jobs_ended"] == ended_jobs;
    })) << figures
        << daemon_->log();
    return figures;
  }
  static void expect_both_jobs(const nlohmann::json& figures) {
    EXPECT_EQ(figures["jobs_completed"], 1) << figures;
    EXPECT_EQ(figures["jobs_failed"], 1) << figures;
    EXPECT_EQ(figures["causes"][0]["cause"], "APPLICATION");
    EXPECT_EQ(figures["causes"][0]["jobs"], 1);
    EXPECT_EQ(figures["queue_wait"]["count"], 2);
    EXPECT_EQ(figures["allocation_time"]["count"], 2);
    EXPECT_EQ(figures["kinds"][0]["kind"], "TRAINING");
    EXPECT_GT(figures["kinds"][0]["gpus"]["gpu_hours"].get<double>(), 0);
    EXPECT_EQ(figures["kinds"][1]["gpus"]["gpu_hours"], 0.0);
  }

  TemporaryDirectory directory_;
  std::optional<Daemon> daemon_;
};

TEST_F(Report, HasTheKeyFiguresOfEndedJobsAlsoAfterARestart) {
  EXPECT_EQ(daemon_->cli({"run", "--gpus", "2", "--kind", "training", "--", "true"}).exit_code, 0);
  EXPECT_EQ(daemon_->cli({"run", "--gpus", "1", "--", "false"}).exit_code, 1);
  expect_both_jobs(figures_with(2));
  ASSERT_EQ(daemon_->terminate(), 0);
  ASSERT_TRUE(daemon_->start()) << daemon_->log();
  expect_both_jobs(figures_with(2));
  const Finished page = daemon_->cli({"report", "kpi", "--since", "1d"});
  EXPECT_EQ(page.exit_code, 0) << page.err;
  EXPECT_NE(page.out.find("2 ended, 1 completed, 1 failed (50.0%)"), std::string::npos) << page.out;
}

}  // namespace
}  // namespace gpu_platform::e2e
