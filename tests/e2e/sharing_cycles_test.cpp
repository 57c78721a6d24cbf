// Hundreds of jobs with parts of GPUs come, take turns and go, one after the other on the same
// GPUs: nothing of them is left.

#include <gtest/gtest.h>

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "harness.h"

namespace gpu_platform::e2e {
namespace {

class SharingCycles : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "jobs take turns in cgroups that root makes";
    ASSERT_TRUE(daemon_.start()) << daemon_.log();
    const std::string said = daemon_.log();
    const std::size_t at = said.rfind("detail=\"/");
    ASSERT_NE(at, std::string::npos) << said;
    cgroup_ = said.substr(at + 8, said.find('"', at + 8) - at - 8);
    ASSERT_TRUE(std::filesystem::is_directory(cgroup_)) << cgroup_;
  }

  std::string submit(const std::string& gpus, const std::vector<std::string>& options,
                     const std::vector<std::string>& command) {
    std::vector<std::string> words = {"--gpus", gpus, "--share", "time-slice"};
    words.insert(words.end(), options.begin(), options.end());
    words.emplace_back("--");
    words.insert(words.end(), command.begin(), command.end());
    return daemon_.submit(words);
  }
  bool all_ended() {
    const nlohmann::json status = daemon_.json({"status"});
    return status.is_object() && status["queued_jobs"] == 0 && status["running_jobs"] == 0;
  }

  // The cgroups of attempts, whose names begin with the job's number.
  std::set<std::string> attempt_cgroups() const {
    std::set<std::string> found;
    std::error_code gone;
    for (const auto& entry : std::filesystem::directory_iterator(cgroup_, gone)) {
      const std::string name = entry.path().filename();
      if (name.find_first_of("0123456789") == 0) found.insert(name);
    }
    return found;
  }
  std::set<std::string> frozen_cgroups() const {
    std::set<std::string> found;
    for (const auto& entry : entries_below(cgroup_)) {
      if (entry.path().filename() != "cgroup.events") continue;
      if (read_file(entry.path()).find("frozen 1") == std::string::npos) continue;
      found.insert(entry.path().parent_path());
    }
    return found;
  }
  static std::set<std::string> entries(const std::string& folder) {
    std::set<std::string> found;
    std::error_code gone;
    for (const auto& entry : std::filesystem::directory_iterator(folder, gone)) {
      found.insert(entry.path().filename());
    }
    return found;
  }

  Daemon daemon_{{.emulate = "dgx-h100",
                  .config = "sharing:\n  modes: [time-slice]\n  slice: 100ms\n"
                            "  weakest_rung: advisory\n"}};  // the jobs are root's
  std::string cgroup_;  // of all jobs of this daemon's launcher
};

TEST_F(SharingCycles, LeaveNoCgroupNoKeeperAndNoRecord) {
  const std::set<std::string> run_before = entries(daemon_.node_folder() + "/run");

  // Two that stay until they are let go, on one GPU: a keeper is there, and one that is killed is
  // started again.
  const std::string gate = daemon_.directory() + "/gate";
  const std::string wait = "until [ -e " + gate + " ]; do sleep 0.05; done";
  const std::string first = submit("0.5", {}, {"/bin/sh", "-c", wait});
  const std::string second = submit("0.5", {}, {"/bin/sh", "-c", wait});
  ASSERT_TRUE(daemon_.reaches(first, "RUNNING")) << daemon_.job(first);
  ASSERT_TRUE(daemon_.reaches(second, "RUNNING")) << daemon_.job(second);
  std::vector<pid_t> keepers;
  ASSERT_TRUE(eventually([&] {
    keepers = daemon_.processes("gp-keeper");
    return keepers.size() == 1 && !frozen_cgroups().empty();
  })) << daemon_.log();
  ASSERT_EQ(kill(keepers.front(), SIGKILL), 0);
  ASSERT_TRUE(eventually([&] {
    const std::vector<pid_t> now = daemon_.processes("gp-keeper");
    return now.size() == 1 && now != keepers && !frozen_cgroups().empty();
  })) << daemon_.log();

  submit("0.5", {"--array", "0-79"}, {"/bin/true"});
  submit("0.25", {"--array", "0-99"}, {"/bin/true"});
  submit("0.125", {"--array", "0-39"},
         {program("gpu-workload"), "--memory", "1G", "--duration", "1s"});
  std::ofstream(gate).flush();
  ASSERT_TRUE(eventually([&] { return all_ended(); }, std::chrono::seconds(300)))
      << daemon_.json({"status"});
  const nlohmann::json done = daemon_.json({"jobs", "list", "--all", "--state", "COMPLETED"});
  EXPECT_EQ(done["jobs"].size(), 222U);

  EXPECT_TRUE(eventually([&] { return daemon_.processes("gp-supervisor").empty(); }));
  EXPECT_TRUE(eventually([&] { return daemon_.processes("gp-keeper").empty(); }));
  EXPECT_TRUE(eventually([&] { return attempt_cgroups().empty(); }))
      << ::testing::PrintToString(attempt_cgroups());
  EXPECT_EQ(frozen_cgroups(), std::set<std::string>());
  EXPECT_TRUE(eventually([&] { return entries(daemon_.node_folder() + "/attempts").empty(); }))
      << ::testing::PrintToString(entries(daemon_.node_folder() + "/attempts"));
  EXPECT_TRUE(eventually([&] {
    return std::ranges::includes(run_before, entries(daemon_.node_folder() + "/run"));
  })) << ::testing::PrintToString(entries(daemon_.node_folder() + "/run"));
  EXPECT_TRUE(eventually([&] { return daemon_.json({"status"})["available_gpus"] == 8; }));
  const nlohmann::json status = daemon_.json({"status"});
  EXPECT_EQ(status["available_share"], 8) << status;
  for (const nlohmann::json& gpu : status["gpus"]) {
    EXPECT_TRUE(gpu["parts"].empty()) << gpu;
    EXPECT_EQ(gpu["free_share"], 1) << gpu;
  }

  EXPECT_EQ(daemon_.terminate(), 0);
  EXPECT_TRUE(eventually([&] { return daemon_.processes("launcher").empty(); }));
  EXPECT_TRUE(eventually([&] { return !std::filesystem::exists(cgroup_); })) << cgroup_;
}

}  // namespace
}  // namespace gpu_platform::e2e
