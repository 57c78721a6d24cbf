#include "node/site_hooks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace gpu_platform::node {
namespace {

using ::testing::EndsWith;
using ::testing::StartsWith;

class HookFile : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/gp-hook-XXXXXX";
    folder_ = mkdtemp(name);
    chmod(folder_.c_str(), 0755);
    file_ = folder_ + "/prolog";
    std::ofstream(file_) << "#!/bin/sh\n";
    chmod(file_.c_str(), 0755);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string folder_;
  std::string file_;
};

TEST_F(HookFile, OfOneOwnerIsTaken) {
  EXPECT_EQ(error_in_hook(file_), "");
  chmod(file_.c_str(), 0500);
  EXPECT_EQ(error_in_hook(file_), "");
}

TEST_F(HookFile, ThatOthersCanChangeIsRefused) {
  for (const mode_t mode : {0775, 0757}) {
    chmod(file_.c_str(), mode);
    EXPECT_THAT(error_in_hook(file_), EndsWith("chmod go-w " + file_));
  }
  chmod(file_.c_str(), 0755);
  chmod(folder_.c_str(), 01777);
  EXPECT_THAT(error_in_hook(file_), EndsWith("chmod go-w " + folder_));
}

TEST_F(HookFile, ThatIsNoProgramIsRefused) {
  chmod(file_.c_str(), 0644);
  EXPECT_THAT(error_in_hook(file_), StartsWith(file_ + " is not executable"));
  EXPECT_EQ(error_in_hook(folder_), folder_ + " is not a regular file");
  EXPECT_EQ(error_in_hook(folder_ + "/none"), folder_ + "/none: No such file or directory");
  EXPECT_EQ(error_in_hook("prolog"), "'prolog' is not an absolute path");
  EXPECT_EQ(error_of({.epilog = "epilog"}), "epilog: 'epilog' is not an absolute path");
  EXPECT_EQ(error_of(SiteHooks{}), "");
}

TEST_F(HookFile, OfAnotherUserIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to give a file away";
  ASSERT_EQ(chown(file_.c_str(), 65534, 0), 0);
  EXPECT_EQ(error_in_hook(file_), file_ + " belongs to user 65534: it must belong to root");
}

TEST(HookEnvironment, HasOfTheJobsOnlyWhatThePlatformHasSet) {
  LaunchRequest request;
  request.user = {1000, 100, {100}, "ann"};
  request.workdir = std::string_view("/home/ann\0", 10);
  request.environment = {std::string_view("CUDA_VISIBLE_DEVICES=GPU-x\0", 27),
                         std::string_view("CUDA_VISIBLE_DEVICES_2=1\0", 25),
                         std::string_view("LD_PRELOAD=/x\0", 14),
                         std::string_view("GPU_PLATFORM_JOB_NAME=x\0", 24),
                         std::string_view("GPU_PLATFORM_GPUS=3\0", 20)};
  EXPECT_THAT(hook_environment("epilog", {model::JobId(4), 2}, request),
              ::testing::ElementsAre(
                  "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                  "GPU_PLATFORM_HOOK=epilog", "GPU_PLATFORM_JOB_ID=4", "GPU_PLATFORM_ATTEMPT=2",
                  "GPU_PLATFORM_UID=1000", "GPU_PLATFORM_GID=100", "GPU_PLATFORM_WORKDIR=/home/ann",
                  "GPU_PLATFORM_USER=ann", "CUDA_VISIBLE_DEVICES=GPU-x", "GPU_PLATFORM_GPUS=3"));
}

std::vector<std::string> told(EndKind kind, std::uint8_t value, EndCause cause) {
  EndRecord end;
  end.kind = kind;
  end.value = value;
  end.cause = cause;
  std::vector<std::string> environment;
  add_end(end, environment);
  return environment;
}

TEST(HookEnvironment, SaysHowTheJobEnded) {
  using Told = std::vector<std::string>;
  EXPECT_EQ(told(EndKind::kExited, 0, EndCause::kItself),
            (Told{"GPU_PLATFORM_END=COMPLETED", "GPU_PLATFORM_EXIT_CODE=0"}));
  EXPECT_EQ(told(EndKind::kExited, 3, EndCause::kItself),
            (Told{"GPU_PLATFORM_END=FAILED", "GPU_PLATFORM_EXIT_CODE=3"}));
  EXPECT_EQ(told(EndKind::kSignalled, 15, EndCause::kTimeLimit),
            (Told{"GPU_PLATFORM_END=TIME_LIMIT", "GPU_PLATFORM_SIGNAL=15"}));
  EXPECT_EQ(told(EndKind::kSignalled, 9, EndCause::kOutOfMemory),
            (Told{"GPU_PLATFORM_END=OUT_OF_MEMORY", "GPU_PLATFORM_SIGNAL=9"}));
  EXPECT_EQ(told(EndKind::kExited, 0, EndCause::kStopped),
            (Told{"GPU_PLATFORM_END=STOPPED", "GPU_PLATFORM_EXIT_CODE=0"}));
  EXPECT_EQ(told(EndKind::kNotStarted, 127, EndCause::kItself),
            (Told{"GPU_PLATFORM_END=NOT_STARTED", "GPU_PLATFORM_EXIT_CODE=127"}));
  EXPECT_EQ(told(EndKind::kNotStarted, 0, EndCause::kPrologFailed),
            Told{"GPU_PLATFORM_END=PROLOG_FAILED"});
}

}  // namespace
}  // namespace gpu_platform::node
