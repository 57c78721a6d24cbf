// A store that lost work says so: what is missing is named, jobs do not run twice, ids are not
// given twice, and a person decides.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "harness.h"
#include "store/sqlite/database.h"

namespace gpu_platform::e2e {
namespace {

namespace fs = std::filesystem;

class StoreLoss : public testing::Test {
 protected:
  void start(std::vector<std::string> arguments = {}) {
    DaemonOptions options;
    options.data_dir = directory_.path() + "/data";
    options.arguments = std::move(arguments);
    daemon_.reset();
    daemon_.emplace(options);
    ASSERT_TRUE(daemon_->start()) << daemon_->log();
  }
  std::string file(const std::string& name) const { return directory_.path() + "/data/" + name; }
  Finished tool(const std::string& action) const {
    return run_command(
        {program("gpu-platform"), "store", action, "--data-dir", directory_.path() + "/data"});
  }
  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(file(name), std::ios::binary | std::ios::trunc) << bytes;
  }
  std::string run_one() const {
    std::string id = daemon_->submit({"--", "/bin/true"});
    EXPECT_TRUE(daemon_->reaches(id, "COMPLETED")) << daemon_->log();
    return id;
  }
  void sql(const std::string& text) const {
    using store::Database;
    const auto database = Database::open(file("store.db"), Database::Mode::kReadWrite);
    ASSERT_TRUE(database) << database.error().message;
    const auto done = database->execute(text);
    EXPECT_TRUE(done) << done.error().message;
  }

  TemporaryDirectory directory_;
  std::optional<Daemon> daemon_;
};

TEST_F(StoreLoss, ABackupThatWasPutBackIsRefusedThenAcceptedAndNoIdIsGivenAgain) {
  start();
  const std::string first = run_one();
  // With the daemon running, as docs/journal.md says.
  sql("VACUUM INTO '" + file("backup.db") + "'");
  std::string last;
  for (int i = 0; i < 5; ++i) last = run_one();
  ASSERT_EQ(daemon_->terminate(), 0);
  EXPECT_EQ(tool("check").exit_code, 0);

  fs::copy_file(file("backup.db"), file("store.db"), fs::copy_options::overwrite_existing);
  fs::remove(file("store.db-wal"));
  fs::remove(file("store.db-shm"));
  const Finished check = tool("check");
  EXPECT_EQ(check.exit_code, 1) << check.out;
  EXPECT_NE(check.out.find("are missing"), std::string::npos) << check.out;
  EXPECT_FALSE(daemon_->start());
  EXPECT_EQ(daemon_->wait_for_exit(), 4);
  EXPECT_NE(daemon_->log().find("--accept-loss"), std::string::npos) << daemon_->log();
  EXPECT_NE(daemon_->log().find("jobs 2 to " + last), std::string::npos) << daemon_->log();

  start({"--accept-loss"});
  EXPECT_NE(daemon_->log().find("loss accepted"), std::string::npos) << daemon_->log();
  EXPECT_EQ(daemon_->job(first)["state"], "COMPLETED");
  const std::string next = run_one();
  EXPECT_EQ(std::stoi(next), std::stoi(last) + 1);
  ASSERT_EQ(daemon_->terminate(), 0);
  start();
  EXPECT_EQ(std::stoi(run_one()), std::stoi(next) + 1);
}

TEST_F(StoreLoss, AFlippedByteInTheLogOfAKilledDaemonCostsNoJob) {
  start();
  std::vector<std::string> ids;
  for (int i = 0; i < 20; ++i) {
    ids.push_back(daemon_->submit({"--begin", "2100-01-01T00:00:00Z", "--", "/bin/true"}));
  }
  daemon_->kill_now();
  std::string log = read_file(file("store.db-wal"));
  ASSERT_GT(log.size(), 100'000u);
  log[log.size() / 3] ^= 0x20;
  write("store.db-wal", log);
  const Finished recovery = tool("recover");
  SCOPED_TRACE(recovery.out + recovery.err);
  EXPECT_TRUE(recovery.exit_code == 0 || recovery.out.find("lost: ") != std::string::npos);
  start();
  std::size_t known = 0;
  for (const std::string& id : ids) known += daemon_->job(id).is_object() ? 1 : 0;
  EXPECT_GE(known + 1, ids.size());
  EXPECT_TRUE(recovery.exit_code == 1 || known == ids.size());
  EXPECT_GT(std::stoi(daemon_->submit({"--hold", "--", "/bin/true"})), std::stoi(ids.back()));
}

TEST_F(StoreLoss, AJobWhoseEnvironmentIsLostIsNamedAndHeld) {
  start();
  const std::string id = daemon_->submit({"--hold", "--", "/bin/true"});
  ASSERT_EQ(daemon_->terminate(), 0);
  sql("DELETE FROM environments");
  const Finished check = tool("check");
  EXPECT_EQ(check.exit_code, 1);
  EXPECT_NE(check.out.find("missing: the environment of job " + id), std::string::npos)
      << check.out;
  start();
  EXPECT_EQ(daemon_->cli({"jobs", "release", id}).exit_code, 0);
  ASSERT_TRUE(eventually([&] { return daemon_->job(id)["attempts"].size() == 1; }));
  ASSERT_TRUE(daemon_->reaches(id, "HELD")) << daemon_->log();
  const auto job = daemon_->job(id);
  EXPECT_EQ(job["wait_reason"]["code"], "HELD_BY_PLATFORM");
  EXPECT_NE(job["wait_reason"]["text"].get<std::string>().find("environment variables were lost"),
            std::string::npos);
  EXPECT_EQ(job["attempts"][0]["reason"], "ENVIRONMENT_LOST");
  EXPECT_EQ(daemon_->cli({"jobs", "cancel", id}).exit_code, 0);
  ASSERT_TRUE(daemon_->reaches(id, "CANCELLED"));
}

}  // namespace
}  // namespace gpu_platform::e2e
