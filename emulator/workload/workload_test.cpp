#include "workload/workload.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include <fmt/format.h>

#include "os/testing/eventually.h"
#include "stated_load.h"
#include "tool/node_files.h"

namespace gpu_emulator {
namespace {

using gpu_platform::base::milliseconds;
using gpu_platform::base::seconds;

TEST(Curves, FollowTheirForm) {
  const Curve constant{CurveKind::kConstant, 80, seconds(10)};
  const Curve ramp{CurveKind::kRamp, 80, seconds(10)};
  const Curve sine{CurveKind::kSine, 80, seconds(10)};

  EXPECT_EQ(utilization_at(constant, seconds(3)), 80u);
  EXPECT_EQ(utilization_at(ramp, seconds(0)), 0u);
  EXPECT_EQ(utilization_at(ramp, seconds(5)), 40u);
  EXPECT_EQ(utilization_at(ramp, seconds(60)), 80u);
  EXPECT_EQ(utilization_at(sine, seconds(0)), 0u);
  EXPECT_EQ(utilization_at(sine, milliseconds(2'500)), 40u);
  EXPECT_EQ(utilization_at(sine, seconds(5)), 80u);
  EXPECT_EQ(utilization_at(sine, seconds(10)), 0u);
}

TEST(MemorySteps, GrowToTheirMost) {
  MemorySteps memory{100, 30, seconds(2), 180};
  EXPECT_EQ(memory_at(memory, seconds(0)), 100U);
  EXPECT_EQ(memory_at(memory, milliseconds(1'999)), 100U);
  EXPECT_EQ(memory_at(memory, seconds(2)), 130U);
  EXPECT_EQ(memory_at(memory, seconds(5)), 160U);
  EXPECT_EQ(memory_at(memory, seconds(6)), 180U);
  EXPECT_EQ(memory_at(memory, gpu_platform::base::hours(100)), 180U);
  memory.max_bytes = 50;
  EXPECT_EQ(memory_at(memory, seconds(9)), 100U) << "it never shrinks";
  EXPECT_EQ(memory_at({100}, seconds(9)), 100U);
}

TEST(Curves, HaveNamesThatTheErrorTells) {
  EXPECT_EQ(*parse_curve("sine"), CurveKind::kSine);
  const auto wrong = parse_curve("square");
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message.find("constant, ramp, sine"), std::string::npos);
}

class Workload : public ::testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/workload_test.XXXXXX";
    root_ = mkdtemp(path);
    const auto board = load_board(BOARDS_DIR "/t4x4.yaml");
    ASSERT_TRUE(board) << board.error().message;
    ASSERT_TRUE(create_node(*board, "n1", root_));
    file_.emplace(std::move(*StateFile::open(root_ + "/state", StateFile::Access::kWrite)));
  }
  void TearDown() override {
    file_.reset();
    std::filesystem::remove_all(root_);
  }

  const BoardState& board() const { return file_->state(); }

  pid_t start(std::vector<std::string> words, const std::string& devices,
              const std::string& state_path) {
    words.insert(words.begin(), GPU_WORKLOAD);
    std::vector<std::string> variables{"GPU_EMULATOR_STATE=" + state_path,
                                       "CUDA_VISIBLE_DEVICES=" + devices};
    std::vector<char*> arguments;
    std::vector<char*> environment;
    for (std::string& word : words) arguments.push_back(word.data());
    for (std::string& variable : variables) environment.push_back(variable.data());
    arguments.push_back(nullptr);
    environment.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    pid_t child = -1;
    EXPECT_EQ(
        posix_spawn(&child, GPU_WORKLOAD, &actions, nullptr, arguments.data(), environment.data()),
        0);
    posix_spawn_file_actions_destroy(&actions);
    return child;
  }
  pid_t start(std::vector<std::string> words, const std::string& devices) {
    return start(std::move(words), devices, root_ + "/state");
  }

  static int end_of(pid_t child) {
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  // Waits until the GPU shows so many processes.
  bool shows(std::uint32_t gpu, std::uint32_t processes) {
    return gpu_platform::os::eventually(
        [&] { return read_gpu(board().gpus[gpu]).process_count == processes; });
  }

  std::string root_;
  std::optional<StateFile> file_;
};

TEST_F(Workload, IsOnTheVisibleGpusUntilItIsToldToEnd) {
  const pid_t child = start({"--memory", "2G", "--utilization", "70"}, board().gpus[2].uuid);
  ASSERT_TRUE(shows(2, 1));
  const GpuReading now = read_gpu(board().gpus[2]);
  EXPECT_EQ(now.processes[0].pid, static_cast<std::uint64_t>(child));
  EXPECT_EQ(now.used_bytes, std::uint64_t{2} << 30);
  EXPECT_EQ(now.utilization_percent, 70u);
  EXPECT_EQ(read_gpu(board().gpus[0]).process_count, 0u);

  kill(child, SIGTERM);

  EXPECT_EQ(end_of(child), 0);
  EXPECT_EQ(board().gpus[2].processes[0].pid.load(), 0u) << "left, not only died";
}

// As on the board of another user's daemon: the load is in the process's name, and the board's
// owner enters it.
TEST_F(Workload, IsEnteredByTheBoardsOwnerWithTheLoadThatItStates) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    prctl(PR_SET_NAME, "gpuw:70:2048");
    while (true) pause();
  }
  FILE* const owner = popen(GPU_EMULATOR_REGISTER " follow", "w");
  ASSERT_NE(owner, nullptr);
  fmt::print(owner, "enter {}/state {} {}\n", root_, board().gpus[2].uuid, child);
  fflush(owner);
  EXPECT_TRUE(gpu_platform::os::eventually([&] {
    const GpuReading now = read_gpu(board().gpus[2]);
    return now.utilization_percent == 70 && now.used_bytes == std::uint64_t{2} << 30;
  }));
  EXPECT_EQ(read_gpu(board().gpus[0]).process_count, 0U);

  kill(child, SIGKILL);

  EXPECT_EQ(end_of(child), 128 + SIGKILL);
  EXPECT_TRUE(shows(2, 0));
  EXPECT_EQ(pclose(owner), 0);
}

TEST(StatedLoad, IsOfOneFormAlone) {
  std::uint64_t memory = 0;
  std::uint32_t percent = 0;
  EXPECT_TRUE(read_stated_load("gpuw:5:3\n", &memory, &percent));
  EXPECT_EQ(memory, std::uint64_t{3} << 20);
  EXPECT_EQ(percent, 5U);
  for (const char* const name : {"gpu-workload", "gpuw:101:1", "gpuw:1:1000000", "gpuw:-1:5", ""}) {
    EXPECT_FALSE(read_stated_load(name, &memory, &percent)) << name;
  }
}

TEST_F(Workload, GrowsStepByStepUntilNoneIsLeft) {
  const pid_t child =
      start({"--memory", "2G", "--grow", "1G", "--grow-every", "1s", "--grow-to", "4G"},
            board().gpus[2].uuid);
  EXPECT_TRUE(gpu_platform::os::eventually(
      [&] { return read_gpu(board().gpus[2]).used_bytes == std::uint64_t{4} << 30; }));
  EXPECT_EQ(read_gpu(board().gpus[2]).process_count, 1U);
  kill(child, SIGTERM);
  EXPECT_EQ(end_of(child), 0);
  EXPECT_EQ(end_of(start({"--grow", "99G", "--grow-every", "1s"}, board().gpus[2].uuid)), 4)
      << "out of memory";
  EXPECT_EQ(end_of(start({"--grow", "much"}, "0")), 2);
  EXPECT_EQ(end_of(start({"--grow", "1G", "--grow-every", "0s"}, "0")), 2);
}

TEST_F(Workload, HasSeveralProcessesOnAGpu) {
  const pid_t child = start({"--memory", "1G", "--processes", "3"}, board().gpus[2].uuid);
  ASSERT_TRUE(shows(2, 3));
  EXPECT_EQ(read_gpu(board().gpus[2]).used_bytes, std::uint64_t{3} << 30);
  kill(child, SIGTERM);
  EXPECT_EQ(end_of(child), 0);
  EXPECT_TRUE(shows(2, 0)) << "all of them end";
  EXPECT_EQ(end_of(start({"--processes", "0"}, "0")), 2);
}

// Of several processes of one job each has its own entry, also where another user owns the board.
TEST_F(Workload, EachProcessThatStatesALoadIsEntered) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    prctl(PR_SET_NAME, "gpuw:10:1024");
    if (fork() == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      prctl(PR_SET_NAME, "gpuw:20:2048");
    }
    while (true) pause();
  }
  FILE* const owner = popen(GPU_EMULATOR_REGISTER " follow", "w");
  ASSERT_NE(owner, nullptr);
  fmt::print(owner, "enter {}/state {} {}\n", root_, board().gpus[2].uuid, child);
  fflush(owner);
  EXPECT_TRUE(gpu_platform::os::eventually([&] {
    const GpuReading now = read_gpu(board().gpus[2]);
    return now.process_count == 2 && now.used_bytes == std::uint64_t{3} << 30;
  }));
  kill(child, SIGKILL);
  EXPECT_EQ(end_of(child), 128 + SIGKILL);
  EXPECT_TRUE(shows(2, 0));
  EXPECT_EQ(pclose(owner), 0);
}

TEST_F(Workload, EndsAfterItsDuration) {
  EXPECT_EQ(end_of(start({"--duration", "0s"}, "0,1")), 0);
}

TEST_F(Workload, ThatIsCutShortShowsTheSignal) {
  const pid_t child = start({"--duration", "1h"}, "1");
  ASSERT_TRUE(shows(1, 1));

  kill(child, SIGTERM);

  EXPECT_EQ(end_of(child), 128 + SIGTERM);
  EXPECT_TRUE(shows(1, 0));
}

TEST_F(Workload, FailsWithoutEmulatedGpus) {
  EXPECT_EQ(end_of(start({}, "0", "")), 3);
  EXPECT_EQ(end_of(start({}, "0", "/dev/null")), 1);
  EXPECT_EQ(end_of(start({}, "0", root_ + "/none")), 3);
  EXPECT_EQ(end_of(start({}, "")), 3) << "none may be seen";
  EXPECT_EQ(end_of(start({}, "GPU-none")), 3);
  EXPECT_EQ(end_of(start({"--memory", "99G"}, "0")), 4) << "out of memory";
  EXPECT_EQ(end_of(start({"--memory", "much"}, "0")), 2);
  EXPECT_EQ(end_of(start({"--curve", "square"}, "0")), 2);
}

TEST_F(Workload, SeesTheGpusThatCudaWouldSee) {
  const std::string second = board().gpus[1].uuid;
  using Gpus = std::vector<std::uint32_t>;
  const Gpus all = known_gpus(board(), nullptr);

  EXPECT_EQ(*visible_gpus(board(), std::nullopt, all), (Gpus{0, 1, 2, 3}));
  EXPECT_EQ(*visible_gpus(board(), "", all), Gpus{});
  EXPECT_EQ(*visible_gpus(board(), "3,0", all), (Gpus{3, 0}));
  EXPECT_EQ(*visible_gpus(board(), second + ",2", all), (Gpus{1, 2}));
  EXPECT_EQ(*visible_gpus(board(), second.substr(0, 12), all), Gpus{1});
  EXPECT_FALSE(visible_gpus(board(), "GPU-", all));
  EXPECT_FALSE(visible_gpus(board(), "0,0", all));
  EXPECT_FALSE(visible_gpus(board(), "4", all));
  EXPECT_FALSE(visible_gpus(board(), "0,,1", all));

  const Gpus in_container = {1, 3};
  EXPECT_EQ(*visible_gpus(board(), "0,1", in_container), in_container);
  EXPECT_EQ(*visible_gpus(board(), second, in_container), Gpus{1});
  EXPECT_FALSE(visible_gpus(board(), "2", in_container));
  EXPECT_FALSE(visible_gpus(board(), board().gpus[0].uuid, in_container));
  EXPECT_EQ(known_gpus(board(), root_.c_str()), Gpus{}) << "no device node is there";
}

}  // namespace
}  // namespace gpu_emulator
