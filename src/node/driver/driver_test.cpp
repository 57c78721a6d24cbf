#include "node/driver/driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>

#include <fmt/format.h>

#include "node/driver/opened_gpus.h"

// The whole program but its main, on emulated boards. What it starts and opens is the emulator's.

namespace gpu_platform::node {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class DriverOnBoards : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/driver_test_XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
    const std::string libraries = std::filesystem::path(EMULATED_NVML).parent_path().string();
    setenv("LD_LIBRARY_PATH", libraries.c_str(), 1);
  }
  void TearDown() override {
    unsetenv("GPU_EMULATOR_STATE");
    unsetenv("LD_LIBRARY_PATH");
    std::filesystem::remove_all(folder_);
  }

  void make_board(const std::string& board) {
    const std::string dir = folder_ + "/emulated/n1";
    emulator(fmt::format("create --board {} --node-name n1 --dir {}", board, dir));
    setenv("GPU_EMULATOR_STATE", (dir + "/state").c_str(), 1);
    for (const hardware::GpuDescription& gpu : open_gpus(EMULATED_NVML).gpus) {
      uuids_.push_back(*gpu.uuid);
    }
  }
  static void emulator(const std::string& arguments) {
    ASSERT_EQ(std::system(fmt::format("{} {} > /dev/null", GPU_EMULATOR, arguments).c_str()), 0)
        << arguments;
  }
  void inject(const std::string& fault, int gpu = 0) {
    emulator(fmt::format("inject {} --gpu n1:{} --data-dir {}", fault, gpu, folder_));
  }

  DriverAnswer run(DriverVerb verb, const std::vector<std::string>& gpus, std::uint32_t watts = 0,
                   std::uint64_t limit_ms = 20'000) const {
    DriverOrder order;
    order.verb = verb;
    order.gpus = gpus;
    order.watts = watts;
    order.limit_ms = limit_ms;
    order.library = EMULATED_NVML;
    order.nvidia_smi = EMULATED_SMI;
    return run_driver(order);
  }
  std::string failure(DriverVerb verb, int gpu = 0) const {
    return run(verb, {uuids_.at(gpu)}).gpus.front().failure;
  }

  std::string folder_;
  std::vector<std::string> uuids_;
};

TEST_F(DriverOnBoards, ResetsOneGpuOfABoardAndItPassesItsCheckAfter) {
  make_board("dgx-h100");
  inject("ecc uncorrected 2");
  EXPECT_THAT(failure(DriverVerb::kQuickCheck), HasSubstr("uncorrected memory errors"));
  const DriverAnswer answer = run(DriverVerb::kReset, {uuids_[0]});
  EXPECT_EQ(answer.gpus, (std::vector<DriverResult>{{uuids_[0], ""}}));
  EXPECT_THAT(answer.detail, HasSubstr("was successfully reset"));
  const DriverAnswer checked = run(DriverVerb::kQuickCheck, {uuids_[0]});
  EXPECT_EQ(checked.gpus, (std::vector<DriverResult>{{uuids_[0], ""}}));
  EXPECT_EQ(checked.detail, "readings only: there is no libcuda");
}

TEST_F(DriverOnBoards, OlderBoardsAreResetAsAWholeOrNotAtAll) {
  make_board("dgx-a100");
  EXPECT_THAT(failure(DriverVerb::kReset), HasSubstr(uuids_[7]));
  const DriverAnswer answer = run(DriverVerb::kReset, uuids_);
  for (const DriverResult& result : answer.gpus) EXPECT_EQ(result.failure, "") << result.gpu;
}

TEST_F(DriverOnBoards, AGpuInUseIsNotReset) {
  make_board("dgx-h100");
  emulator(fmt::format("load --gpu n1:0 --pid {} --memory 1G --data-dir {}", getpid(), folder_));
  const std::string in_use = fmt::format("it is in use by process {}", getpid());
  EXPECT_THAT(run(DriverVerb::kReset, {uuids_[0]}, 0, 4'000).gpus[0].failure, StartsWith(in_use));
  EXPECT_EQ(failure(DriverVerb::kReset, 1), "");
}

TEST_F(DriverOnBoards, AFailedResetIsToldWithTheProgramsWords) {
  make_board("dgx-h100");
  inject("reset-fail");
  EXPECT_THAT(failure(DriverVerb::kReset),
              StartsWith("nvidia-smi --gpu-reset failed (255): The following GPUs"));
}

TEST_F(DriverOnBoards, FaultsThatNoResetMendsFailTheCheck) {
  make_board("dgx-h100");
  inject("remap-failed");
  EXPECT_EQ(failure(DriverVerb::kReset), "");
  EXPECT_EQ(failure(DriverVerb::kDeepCheck), "a row of its memory could not be replaced");
  inject("temperature 93", 1);
  EXPECT_THAT(failure(DriverVerb::kQuickCheck, 1), HasSubstr("93 degrees"));
  inject("lost", 2);
  EXPECT_THAT(failure(DriverVerb::kReset, 2), HasSubstr("restart the machine"));
}

TEST_F(DriverOnBoards, AGpuThatIsNotThereIsNamed) {
  make_board("dgx-h100");
  const DriverAnswer answer = run(DriverVerb::kQuickCheck, {"GPU-none", uuids_[1]});
  EXPECT_EQ(answer.gpus[0].failure, "the driver does not list it");
  EXPECT_EQ(answer.gpus[1].failure, "");
  EXPECT_THAT(run(DriverVerb::kReset, {"GPU-none"}).gpus[0].failure, HasSubstr("GPU-none"));
}

TEST_F(DriverOnBoards, PowerLimitIsKeptWithinTheBoards) {
  make_board("dgx-h100");
  EXPECT_THAT(run(DriverVerb::kPower, {uuids_[0]}, 5000).gpus[0].failure,
              HasSubstr("give 200 W to 700 W"));
  EXPECT_THAT(run(DriverVerb::kPower, {uuids_[0]}, 4'000'000'000).gpus[0].failure,
              HasSubstr("is no power limit"));
  const std::string failure = run(DriverVerb::kPower, {uuids_[0]}, 400).gpus[0].failure;
  if (geteuid() != 0) {
    EXPECT_THAT(failure, HasSubstr("only root"));
    return;
  }
  EXPECT_EQ(failure, "");
  EXPECT_EQ(open_gpus(EMULATED_NVML).gpus[0].power_limit, base::Milliwatts(400'000));
  // The reset sets it back, and we set it again.
  EXPECT_EQ(run(DriverVerb::kReset, {uuids_[0]}).gpus[0].failure, "");
  EXPECT_EQ(open_gpus(EMULATED_NVML).gpus[0].power_limit, base::Milliwatts(400'000));
}

}  // namespace
}  // namespace gpu_platform::node
