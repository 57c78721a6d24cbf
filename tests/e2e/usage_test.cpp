// What jobs cost, as users see it: the same before and after the daemon is killed.

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include "harness.h"

namespace gpu_platform::e2e {
namespace {

// Waits until the job's cost changes no more, and returns it.
nlohmann::json cost_in_all(const Daemon& daemon, const std::string& id) {
  nlohmann::json cost;
  EXPECT_TRUE(eventually([&] {
    const nlohmann::json job = daemon.job(id);
    if (!job.is_object()) return false;
    cost = job.value("cost", nlohmann::json());
    if (cost.is_object()) {
      // Readings of the last minute may go with a kill.
      for (const char* const key : {"energy_kwh", "energy_cost", "co2_grams"}) cost.erase(key);
    }
    return cost.is_object() && cost["running"] == false;
  })) << id;
  return cost;
}

TEST(UsageOfJobs, IsTheSameAfterTheDaemonIsKilled) {
  Daemon daemon;
  ASSERT_TRUE(daemon.start()) << daemon.log();
  const std::string first = daemon.submit({"--gpus", "1", "--", "/bin/sleep", "1"});
  ASSERT_TRUE(daemon.reaches(first, "COMPLETED")) << daemon.log();
  const nlohmann::json before = cost_in_all(daemon, first);
  ASSERT_TRUE(before.is_object());
  EXPECT_GT(before["gpu_hours"].get<double>(), 0);

  const std::string goes_on = daemon.directory() + "/goes-on";
  const std::string second = daemon.submit(
      {"--gpus", "2", "--", "/bin/sh", "-c", "until [ -e " + goes_on + " ]; do sleep 0.1; done"});
  ASSERT_TRUE(daemon.reaches(second, "RUNNING")) << daemon.log();
  daemon.kill_now();
  ASSERT_TRUE(daemon.start()) << daemon.log();
  std::ofstream(goes_on).flush();
  ASSERT_TRUE(daemon.reaches(second, "COMPLETED")) << daemon.log();
  EXPECT_EQ(cost_in_all(daemon, first), before);
  const nlohmann::json after = cost_in_all(daemon, second);
  ASSERT_TRUE(after.is_object());

  // The sum of both jobs is that of the ledger.
  const nlohmann::json usage = daemon.json({"usage", "--by", "job"});
  ASSERT_TRUE(usage.is_object());
  std::set<std::string> jobs;
  for (const nlohmann::json& group : usage["groups"]) jobs.insert(group["keys"][0]);
  jobs.erase("");  // the time that no job had
  EXPECT_EQ(jobs, (std::set<std::string>{first, second}));
  EXPECT_NEAR(usage["total"]["gpu_hours"].get<double>(),
              before["gpu_hours"].get<double>() + after["gpu_hours"].get<double>(), 1e-9);
  const Finished balance = daemon.cli({"report", "balance"});
  EXPECT_EQ(balance.exit_code, 0) << balance.out << balance.err;
  EXPECT_FALSE(balance.out.starts_with("0 GPUs ")) << balance.out;

  // The time that no job had is in it, too.
  const nlohmann::json report = daemon.json({"report", "balance"});
  ASSERT_TRUE(report.is_object());
  EXPECT_TRUE(report["absences"].empty()) << report["absences"];
  double idle = 0;
  for (const nlohmann::json& part : report["parts"]) {
    if (part["name"] == "idle") idle = part["gpu_hours"].get<double>();
  }
  EXPECT_GT(idle, 0);
}

TEST(UsageOfJobs, AMonthHasTheKeysOfItsFormatAlone) {
  Daemon daemon;
  ASSERT_TRUE(daemon.start()) << daemon.log();
  const std::string id = daemon.submit({"--gpus", "1", "--", "/bin/sleep", "1"});
  ASSERT_TRUE(daemon.reaches(id, "COMPLETED")) << daemon.log();
  cost_in_all(daemon, id);
  const nlohmann::json report = daemon.json({"report", "monthly"});
  ASSERT_TRUE(report.is_object());
  std::set<std::string> keys;
  for (const auto& [key, value] : report.items()) keys.insert(key);
  EXPECT_EQ(keys, (std::set<std::string>{"month", "teams", "total"}));
  ASSERT_EQ(report["teams"].size(), 1U);
  const nlohmann::json& team = *report["teams"].begin();
  EXPECT_EQ(team["total_cost"], report["total"]);
  ASSERT_EQ(team["by_gpu_type"].size(), 1U);
  EXPECT_TRUE(team["by_gpu_type"].begin()->contains("hours"));
  EXPECT_TRUE(team["by_gpu_type"].begin()->contains("cost"));
}

}  // namespace
}  // namespace gpu_platform::e2e
