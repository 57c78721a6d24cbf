// Jobs on machines that people also use outside the queue: which GPUs they get, and when they wait.

#include <gtest/gtest.h>

#include <unistd.h>

#include <chrono>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "harness.h"
#include "unmanaged_process.h"

namespace gpu_platform::e2e {
namespace {

// What a program outside the queue makes of a GPU.
struct OutsideLoad {
  int gpu = 0;
  std::string memory;
  int percent = 0;
};

class GpuSelection : public ::testing::Test {
 protected:
  void start_on(const std::string& board, const std::string& config = {}) {
    node_ = board + "-1";
    daemon_.emplace(DaemonOptions{.emulate = board,
                                  .config = "monitoring:\n  interval_seconds: 1\n"
                                            "gpu_selection:\n  enabled: true\n" +
                                            config});
    ASSERT_TRUE(daemon_->start()) << daemon_->log();
  }
  void put(const OutsideLoad& load) {
    const Finished done =
        run_command({program("gpu-emulator"), "load", "--data-dir", daemon_->data_dir(), "--gpu",
                     node_ + ":" + std::to_string(load.gpu), "--pid",
                     std::to_string(processes_[load.gpu].pid()), "--memory", load.memory,
                     "--utilization", std::to_string(load.percent)});
    ASSERT_EQ(done.exit_code, 0) << done.err;
  }
  // The first reading of a daemon counts alone; later ones change a mean over a minute. It is there
  // before a job can hold the GPUs.
  void put_before_the_next_start(const std::vector<OutsideLoad>& loads) {
    ASSERT_EQ(daemon_->terminate(), 0);
    for (const OutsideLoad& load : loads) put(load);
    ASSERT_TRUE(daemon_->start()) << daemon_->log();
    for (const OutsideLoad& load : loads) {
      ASSERT_TRUE(eventually([&] {
        return gpu(static_cast<std::size_t>(load.gpu))["unmanaged_processes"].size() == 1;
      })) << daemon_->log();
    }
  }

  nlohmann::json gpu(std::size_t index) const {
    return daemon_->json({"status", "--all"})["gpus"][index];
  }
  bool is_refused_for(const std::string& reason) const {
    return eventually([&] {
      const nlohmann::json shown = gpu(0)["reason"];
      return shown.is_string() && shown.get<std::string>().find(reason) != std::string::npos;
    });
  }
  // The job waits because the only GPU is no use to it, whatever other jobs do.
  bool waits_for_the_gpu(const std::string& id) const {
    return eventually([&] {
      const nlohmann::json job = daemon_->job(id);
      return job["state"] == "QUEUED" && job["wait_reason"].is_object() &&
             job["wait_reason"]["counts"].contains("gpus_offline");
    });
  }
  std::string submit_sleep(const std::string& gpus) const {
    return daemon_->submit({"--gpus", gpus, "--", "/bin/sleep", "1000"});
  }
  nlohmann::json choice_of(const std::string& id) const {
    const nlohmann::json job = daemon_->job(id);
    return job["attempts"].empty() ? nlohmann::json() : job["attempts"].back()["gpu_info"];
  }
  // A job with all GPUs shows what the scheduler knows of each.
  bool are_known(const std::vector<int>& percents) const {
    const auto shows_them = [&] {
      const std::string id =
          daemon_->submit({"--gpus", std::to_string(percents.size()), "--", "/bin/true"});
      if (!daemon_->reaches(id, "COMPLETED")) return false;
      const nlohmann::json details = choice_of(id)["details"];
      for (std::size_t i = 0; i < percents.size(); ++i) {
        if (details[i]["utilization_percent"] != percents[i]) return false;
      }
      return true;
    };
    return eventually(shows_them, std::chrono::seconds(120));
  }
  // As the requirement has it.
  void expect_score(const nlohmann::json& chosen) const {
    const auto index = chosen["index"].get<std::size_t>();
    const double total = gpu(index)["memory_total_bytes"].get<double>() / (1 << 20);
    const double memory = chosen["memory_free_mb"].get<double>() / total;
    const double idle = (100 - chosen["utilization_percent"].get<double>()) / 100;
    EXPECT_NEAR(chosen["availability_score"].get<double>(), 0.6 * memory + 0.4 * idle, 0.002)
        << chosen;
  }

  std::string node_;
  std::map<int, UnmanagedProcess> processes_;  // by GPU
  std::optional<Daemon> daemon_;
};

TEST_F(GpuSelection, JobsGetTheGpusWithTheHighestScoresFirst) {
  start_on("a100-pcie-x4");
  put_before_the_next_start({{0, "16G", 20}, {1, "60G", 10}, {2, "16G", 40}});
  ASSERT_TRUE(are_known({20, 10, 40, 0})) << daemon_->log();
  for (const int expected : {3, 0, 2, 1}) {
    const std::string id = submit_sleep("1");
    ASSERT_TRUE(daemon_->reaches(id, "RUNNING")) << daemon_->job(id);
    const nlohmann::json choice = choice_of(id);
    EXPECT_EQ(choice["indices"], nlohmann::json::array({expected})) << choice;
    expect_score(choice["details"][0]);
    const std::string page = daemon_->cli({"jobs", "describe", id}).out;
    EXPECT_NE(page.find("Chosen by load: " + node_ + " GPU " + std::to_string(expected) + ": "),
              std::string::npos)
        << page;
  }
}

TEST_F(GpuSelection, TheChoiceOfAJobHasTheFieldsOfTheRequirement) {
  start_on("a100-pcie-x4");
  put_before_the_next_start({{1, "16G", 20}});
  ASSERT_TRUE(are_known({0, 20, 0, 0})) << daemon_->log();
  const std::string id = submit_sleep("4");
  ASSERT_TRUE(daemon_->reaches(id, "RUNNING")) << daemon_->job(id);
  const nlohmann::json choice = choice_of(id);
  EXPECT_EQ(keys_of(choice),
            (std::set<std::string>{"count", "indices", "allocation_method", "details"}));
  EXPECT_EQ(choice["count"], 4);
  EXPECT_EQ(choice["indices"], nlohmann::json::array({0, 1, 2, 3}));
  EXPECT_EQ(choice["allocation_method"], "availability_score");
  ASSERT_EQ(choice["details"].size(), 4U);
  for (const nlohmann::json& chosen : choice["details"]) {
    EXPECT_EQ(keys_of(chosen),
              (std::set<std::string>{"node", "index", "name", "memory_free_mb",
                                     "utilization_percent", "availability_score"}));
    EXPECT_EQ(chosen["name"], "NVIDIA A100 80GB PCIe");
    EXPECT_TRUE(chosen["memory_free_mb"].is_number_integer()) << chosen;
    EXPECT_TRUE(chosen["utilization_percent"].is_number_integer()) << chosen;
  }
  EXPECT_EQ(choice["details"][0]["availability_score"], 1);
  EXPECT_LT(choice["details"][1]["availability_score"].get<double>(), 1);
}

TEST_F(GpuSelection, AJobWaitsWhileTheLimitsRefuseAllGpusAndStartsWhenTheLoadGoes) {
  start_on("h200-single");
  put_before_the_next_start({{0, "135G", 10}});
  ASSERT_TRUE(is_refused_for(" GiB of its memory are free, and gpu_selection wants 7.8 GiB"))
      << gpu(0);
  const std::string id = daemon_->submit({"--gpus", "1", "--", "/bin/true"});
  EXPECT_TRUE(waits_for_the_gpu(id)) << daemon_->job(id);
  put_before_the_next_start({{0, "16G", 90}});
  ASSERT_TRUE(is_refused_for("others use it for 90 % of the time, and gpu_selection allows 50 %"))
      << gpu(0);
  EXPECT_TRUE(waits_for_the_gpu(id)) << daemon_->job(id);
  processes_.at(0).end();
  ASSERT_TRUE(daemon_->reaches(id, "COMPLETED")) << daemon_->job(id);
  EXPECT_EQ(choice_of(id)["details"][0]["availability_score"], 1) << "nothing is left of it";
}

TEST_F(GpuSelection, AJobDoesNotGetMemoryThatOthersTookWhileAnotherJobHeldTheGpu) {
  start_on("h200-single");
  const std::string flag = daemon_->directory() + "/flag";
  const std::string first = daemon_->submit(
      {"--gpus", "1", "--", "/bin/sh", "-c", "until [ -e " + flag + " ]; do sleep 0.2; done"});
  ASSERT_TRUE(daemon_->reaches(first, "RUNNING")) << daemon_->job(first);
  put({0, "100G", 10});
  const std::string second =
      daemon_->submit({"--gpus", "1", "--gpu-memory", "120G", "--", "/bin/true"});
  ASSERT_TRUE(waits_for_the_gpu(second)) << daemon_->job(second);
  std::ofstream(flag).flush();
  ASSERT_TRUE(daemon_->reaches(first, "COMPLETED")) << daemon_->job(first);
  const std::string third =
      daemon_->submit({"--gpus", "1", "--gpu-memory", "20G", "--", "/bin/true"});
  ASSERT_TRUE(daemon_->reaches(third, "COMPLETED")) << "there is room for it";
  EXPECT_EQ(daemon_->job(second)["state"], "QUEUED");
  processes_.at(0).end();
  EXPECT_TRUE(daemon_->reaches(second, "COMPLETED")) << daemon_->job(second);
}

TEST_F(GpuSelection, APartOfAGpuWaitsUntilNoOthersAreOnIt) {
  if (geteuid() != 0) GTEST_SKIP() << "jobs take turns in cgroups that root makes";
  start_on("h200-single", "sharing:\n  modes: [time-slice]\n  weakest_rung: advisory\n");
  put_before_the_next_start({{0, "16G", 10}});
  ASSERT_TRUE(are_known({10})) << "whole, it is of use: " << daemon_->log();
  const std::string part = submit_sleep("0.5");
  EXPECT_TRUE(waits_for_the_gpu(part)) << daemon_->job(part);
  processes_.at(0).end();
  ASSERT_TRUE(daemon_->reaches(part, "RUNNING")) << daemon_->job(part);
  EXPECT_TRUE(choice_of(part).is_null()) << "the rules of sharing choose it";
}

}  // namespace
}  // namespace gpu_platform::e2e
