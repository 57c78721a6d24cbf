// The history of readings beside a real daemon: it grows, it outlives kill -9, and a damaged file
// costs history and nothing else.

#include <gtest/gtest.h>

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "harness.h"
#include "store/sqlite/database.h"

namespace gpu_platform::e2e {
namespace {

class Telemetry : public testing::Test {
 protected:
  void start(const std::string& config = {}) {
    daemon_.reset();
    daemon_.emplace(DaemonOptions{.config = config, .data_dir = data_dir()});
    ASSERT_TRUE(daemon_->start()) << daemon_->log();
  }
  std::string data_dir() const { return directory_.path() + "/data"; }
  std::string history() const { return data_dir() + "/history.db"; }
  // The history is written when the daemon ends in order. -1: it cannot be read.
  std::int64_t number(const std::string& sql) const {
    auto database = store::Database::open(history(), store::Database::Mode::kReadWrite);
    EXPECT_TRUE(database) << database.error().message;
    if (!database) return -1;
    const auto number = database->query_integer(sql);
    EXPECT_TRUE(number) << number.error().message;
    return number.value_or(-1);
  }
  std::int64_t blocks() const { return number("SELECT COUNT(*) FROM blocks"); }
  // The daemon has read each of its GPUs.
  void wait_for_readings() const {
    ASSERT_TRUE(eventually([&] {
      const nlohmann::json gpus = daemon_->json({"status"})["gpus"];
      return gpus.size() == 8 && std::ranges::none_of(gpus, [](const nlohmann::json& gpu) {
               return gpu["utilization_percent"].is_null();
             });
    })) << daemon_->log();
  }

  TemporaryDirectory directory_;
  std::optional<Daemon> daemon_;
};

TEST_F(Telemetry, HistoryGrowsAndOutlivesAKilledDaemon) {
  start();
  wait_for_readings();
  ASSERT_EQ(daemon_->terminate(), 0);
  struct stat status{};
  ASSERT_EQ(::stat(history().c_str(), &status), 0) << daemon_->log();
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_EQ(number("SELECT COUNT(*) FROM subjects WHERE of = 0"), 8) << "GPUs";
  const std::int64_t first = blocks();
  EXPECT_GE(first, 8);

  ASSERT_TRUE(daemon_->start()) << daemon_->log();
  daemon_->kill_now();
  EXPECT_GE(blocks(), first);

  ASSERT_TRUE(daemon_->start()) << daemon_->log();
  wait_for_readings();
  ASSERT_EQ(daemon_->terminate(), 0);
  EXPECT_GT(blocks(), first);
  EXPECT_EQ(number("SELECT COUNT(*) FROM subjects WHERE of = 0"), 8);
}

TEST_F(Telemetry, ADamagedHistoryIsPutAsideAndTheDaemonGoesOn) {
  start();
  wait_for_readings();
  ASSERT_EQ(daemon_->terminate(), 0);
  std::ofstream(history(), std::ios::binary | std::ios::trunc) << std::string(10'000, 'x');
  ASSERT_TRUE(daemon_->start()) << daemon_->log();
  EXPECT_NE(daemon_->log().find("history.db.damaged-1"), std::string::npos) << daemon_->log();
  const std::string id = daemon_->submit({"--gpus", "1", "--", "/bin/true"});
  EXPECT_TRUE(daemon_->reaches(id, "COMPLETED")) << daemon_->log();
  wait_for_readings();
  ASSERT_EQ(daemon_->terminate(), 0);
  EXPECT_TRUE(std::filesystem::exists(history() + ".damaged-1"));
  EXPECT_GE(blocks(), 8);
}

TEST_F(Telemetry, ASiteThatWantsNoHistoryHasNone) {
  start("telemetry:\n  history: false\n");
  const std::string id = daemon_->submit({"--gpus", "1", "--", "/bin/true"});
  EXPECT_TRUE(daemon_->reaches(id, "COMPLETED")) << daemon_->log();
  ASSERT_EQ(daemon_->terminate(), 0);
  EXPECT_FALSE(std::filesystem::exists(history()));
}

}  // namespace
}  // namespace gpu_platform::e2e
