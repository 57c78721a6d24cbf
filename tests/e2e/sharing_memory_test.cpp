// Jobs that use more memory than their part of a GPU (docs/scheduling.md), and their neighbours.

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "harness.h"

namespace gpu_platform::e2e {
namespace {

class SharedMemory : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(daemon_.start()) << daemon_.log(); }

  std::string submit(const std::string& gpus, const std::string& memory,
                     std::vector<std::string> command) {
    std::vector<std::string> words = {"--gpus",     gpus, "--gpu-memory", memory, "--share",
                                      "time-slice", "--"};
    words.insert(words.end(), command.begin(), command.end());
    return daemon_.submit(words);
  }
  std::string output(const std::string& id) { return daemon_.cli({"jobs", "logs", id}).out; }

  Daemon daemon_{{.emulate = "dgx-h100",
                  .config = "monitoring:\n  interval_seconds: 1\n"
                            "policies:\n  stop_grace: 5s\n"
                            "sharing:\n  modes: [time-slice]\n  slice: 100ms\n"
                            "  weakest_rung: advisory\n"}};  // the jobs are root's
};

TEST_F(SharedMemory, AJobThatGrowsOverItsPartIsWarnedAndThenStopped) {
  const std::string id = submit(
      "0.5", "4G", {program("gpu-workload"), "--memory", "2G", "--grow", "1G", "--grow-to", "6G"});
  ASSERT_TRUE(daemon_.reaches(id, "FAILED")) << daemon_.job(id);
  const nlohmann::json attempt = daemon_.job(id)["attempts"][0];
  EXPECT_EQ(attempt["reason"], "GPU_MEMORY") << attempt;
  EXPECT_EQ(attempt["exit_code"], 0) << "it obeyed: " << attempt;
  const std::string detail = attempt["detail"];
  EXPECT_NE(detail.find("of the 4 GiB of its part"), std::string::npos) << detail;
  EXPECT_NE(output(id).find("[gpu-platform: the job uses"), std::string::npos) << output(id);
  EXPECT_TRUE(eventually([&] { return daemon_.json({"status"})["available_gpus"] == 8; }))
      << "nothing is left of it";
}

TEST_F(SharedMemory, ItsProcessesCountTogether) {
  const std::string id =
      submit("0.5", "4G", {program("gpu-workload"), "--memory", "2G", "--processes", "3"});
  ASSERT_TRUE(daemon_.reaches(id, "FAILED")) << daemon_.job(id);
  EXPECT_EQ(daemon_.job(id)["reason"], "GPU_MEMORY") << daemon_.job(id);
}

TEST_F(SharedMemory, ANeighbourThatFailsForItIsQueuedAgainForFree) {
  const std::string marker = daemon_.directory() + "/failed";
  // It fails once, when it is told to, and runs until it is told to end.
  const std::string line = program("gpu-workload") + " --memory 1G & while [ ! -e " + marker +
                           " ] || [ -e " + marker + ".seen ]; do [ -e " + marker +
                           ".end ] && exit 0; sleep 0.1; done; touch " + marker + ".seen; exit 9";
  const std::string neighbour = submit("0.25", "40G", {"/bin/sh", "-c", line});
  ASSERT_TRUE(daemon_.reaches(neighbour, "RUNNING"));
  const std::string greedy = submit("0.5", "4G",
                                    {program("gpu-workload"), "--memory", "1G", "--grow", "60G",
                                     "--grow-every", "3s", "--grow-to", "61G"});
  ASSERT_TRUE(daemon_.reaches(greedy, "RUNNING"));
  EXPECT_EQ(daemon_.job(greedy)["attempts"][0]["gpus"][0]["index"],
            daemon_.job(neighbour)["attempts"][0]["gpus"][0]["index"]);

  ASSERT_TRUE(eventually(
      [&] { return output(greedy).find("[gpu-platform: the job uses") != std::string::npos; }));
  std::ofstream(marker).flush();
  ASSERT_TRUE(eventually([&] { return daemon_.job(neighbour)["attempts"].size() == 2; }))
      << daemon_.job(neighbour);
  const nlohmann::json first = daemon_.job(neighbour)["attempts"][0];
  EXPECT_EQ(first["exit_code"], 9) << "the true exit code stays";
  const std::string detail = first["detail"];
  EXPECT_NE(detail.find("job " + greedy + " on the same GPU used"), std::string::npos) << detail;
  EXPECT_NE(detail.find("no retry is used"), std::string::npos) << detail;

  ASSERT_TRUE(daemon_.reaches(greedy, "FAILED")) << daemon_.job(greedy);
  EXPECT_EQ(daemon_.job(greedy)["reason"], "GPU_MEMORY");
  ASSERT_TRUE(daemon_.reaches(neighbour, "RUNNING")) << daemon_.job(neighbour);
  std::ofstream(marker + ".end").flush();
  EXPECT_TRUE(daemon_.reaches(neighbour, "COMPLETED")) << daemon_.job(neighbour);
}

}  // namespace
}  // namespace gpu_platform::e2e
