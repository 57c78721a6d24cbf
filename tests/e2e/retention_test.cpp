// What the platform keeps of ended jobs, as a user sees it: their output and their place in the
// history go when the site says so, and the answers say why.

#include <gtest/gtest.h>

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "harness.h"

namespace gpu_platform::e2e {
namespace {

class Retention : public testing::Test {
 protected:
  void start(const std::string& config) {
    daemon_.emplace(DaemonOptions{.config = config});
    ASSERT_TRUE(daemon_->start()) << daemon_->log();
  }
  std::string config_file() const { return daemon_->directory() + "/config.yaml"; }
  void reload(const std::string& config) const {
    std::ofstream(config_file()) << "execution:\n  min_uid: 1\n" << config;
    ASSERT_EQ(kill(daemon_->pid(), SIGHUP), 0);
  }
  std::string run(const std::string& script, const std::vector<std::string>& options = {}) const {
    std::vector<std::string> words = options;
    words.insert(words.end(), {"--", "/bin/sh", "-c", script});
    std::string id = daemon_->submit(words);
    EXPECT_TRUE(daemon_->reaches(id, "COMPLETED")) << daemon_->log();
    return id;
  }
  bool has_output(const std::string& id) const {
    return access((daemon_->node_folder() + "/output/0/" + id).c_str(), F_OK) == 0;
  }

  TemporaryDirectory directory_;
  std::optional<Daemon> daemon_;
};

TEST_F(Retention, OutputGoesAfterItsTimeAndTheJobAndFilesOfUsersStay) {
  start("");
  const std::string own = directory_.path() + "/own.txt";
  const std::string kept = run("echo kept");
  const std::string named = run("echo mine", {"--output", own});
  EXPECT_EQ(daemon_->cli({"jobs", "logs", kept}).out, "kept\n");

  reload("store:\n  output_keep: 1s\n");
  EXPECT_TRUE(eventually([&] { return !has_output(kept); })) << daemon_->log();
  const Finished logs = daemon_->cli({"jobs", "logs", kept});
  EXPECT_EQ(logs.exit_code, 3) << logs.err;
  EXPECT_NE(logs.err.find("was removed after its end"), std::string::npos) << logs.err;
  EXPECT_NE(logs.err.find("store.output_keep"), std::string::npos) << logs.err;
  EXPECT_EQ(daemon_->job(kept)["state"], "COMPLETED");
  EXPECT_EQ(read_file(own), "mine\n");
  EXPECT_EQ(daemon_->cli({"jobs", "logs", named}).out, "mine\n");

  // A job that runs keeps what it printed however long ago that was.
  const std::string running = daemon_->submit({"--", "/bin/sh", "-c", "echo here; sleep 1000"});
  ASSERT_TRUE(daemon_->reaches(running, "RUNNING"));
  const std::string later = run("echo later");
  EXPECT_TRUE(eventually([&] { return !has_output(later); }));
  EXPECT_EQ(daemon_->cli({"jobs", "logs", running}).out, "here\n");
}

TEST_F(Retention, JobsLeaveTheHistoryByNumberAndByAgeAndStayAwayAfterARestart) {
  start("store:\n  max_ended_jobs: 2\n");
  std::vector<std::string> ids;
  for (int i = 0; i < 5; ++i) ids.push_back(run("echo " + std::to_string(i)));
  const auto listed = [&] { return daemon_->json({"jobs", "list", "--all"})["jobs"].size(); };
  EXPECT_TRUE(eventually([&] { return listed() == 2; })) << daemon_->log();
  EXPECT_EQ(daemon_->job(ids[4])["state"], "COMPLETED");
  EXPECT_EQ(daemon_->job(ids[3])["state"], "COMPLETED");
  EXPECT_FALSE(has_output(ids[0]));
  EXPECT_TRUE(has_output(ids[4]));
  const Finished gone = daemon_->cli({"jobs", "describe", ids[0]});
  EXPECT_EQ(gone.exit_code, 3);
  EXPECT_NE(gone.err.find("store.max_ended_jobs"), std::string::npos) << gone.err;

  ASSERT_EQ(daemon_->terminate(), 0);
  const Finished check = daemon_->cli({"store", "check", "--data-dir", daemon_->data_dir()});
  EXPECT_EQ(check.exit_code, 0) << check.out << check.err;
  ASSERT_TRUE(daemon_->start()) << daemon_->log();
  EXPECT_EQ(listed(), 2u);
  reload("store:\n  job_keep: 1s\n");
  EXPECT_TRUE(eventually([&] { return listed() == 0; })) << daemon_->log();
  EXPECT_FALSE(has_output(ids[4]));
  const Finished old = daemon_->cli({"jobs", "describe", ids[4]});
  EXPECT_EQ(old.exit_code, 3);
  EXPECT_NE(old.err.find("store.job_keep"), std::string::npos) << old.err;

  // What they used is kept.
  const auto usage = daemon_->json({"usage", "--by", "job"});
  ASSERT_TRUE(usage.is_object());
  ASSERT_TRUE(usage.contains("groups"));
  EXPECT_GE(usage["groups"].size(), ids.size());
}

TEST_F(Retention, ABadValueIsRefusedWithItsNameAndTheAllowedOnes) {
  start("");
  const std::string file = directory_.path() + "/config.yaml";
  std::ofstream(file) << "store:\n  output_keep: 4000d\n";
  const Finished check = daemon_->cli({"config", "check", file});
  EXPECT_EQ(check.exit_code, 2);
  EXPECT_NE(check.err.find("store.output_keep"), std::string::npos) << check.err;
  EXPECT_NE(check.err.find("3650d"), std::string::npos) << check.err;
  std::ofstream(file) << "store:\n  output_keep: 40d\n";
  const Finished show = daemon_->cli({"config", "show", file});
  EXPECT_NE(show.out.find("store.output_keep"), std::string::npos) << show.out;
  EXPECT_NE(show.out.find("40d"), std::string::npos) << show.out;
}

}  // namespace
}  // namespace gpu_platform::e2e
