#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "tool/faults.h"
#include "tool/library_fixture.h"

// Processes on emulated GPUs: entered, gone, lingering, and many at once.

extern char** environ;

namespace gpu_emulator {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

int run(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  pid_t child = -1;
  const int error =
      posix_spawn(&child, words[0].c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return -1;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// A process that lives until it is told to end, and is no zombie afterwards.
class Sleeper {
 public:
  Sleeper() : pid_(fork()) {
    if (pid_ == 0) {
      while (true) pause();
    }
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;
  ~Sleeper() { end(); }

  std::uint64_t pid() const { return static_cast<std::uint64_t>(pid_); }
  void kill_unreaped() { ::kill(pid_, SIGKILL); }
  void end() {
    if (pid_ <= 0) return;
    kill_unreaped();
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_;
};

class Processes : public Library {
 protected:
  unsigned listed(unsigned index) {
    const auto list = find<decltype(nvmlDeviceGetComputeRunningProcesses_v3)>(
        "nvmlDeviceGetComputeRunningProcesses_v3");
    ProcessInfo processes[kMaxProcesses];
    unsigned count = kMaxProcesses;
    EXPECT_EQ(list(gpu(index), &count, processes), kSuccess);
    return count;
  }
  std::string uuid(unsigned index) { return state().state().gpus[index].uuid; }
};

TEST_F(Processes, LeaveTheListWhenTheyEnd) {
  initialise();
  StateFile file = state();
  Sleeper sleeper;
  ASSERT_TRUE(file.load(0, sleeper.pid(), kMiB, 10));
  EXPECT_EQ(listed(0), 1u);

  sleeper.end();

  EXPECT_EQ(listed(0), 0u);
}

TEST_F(Processes, OfAReusedPidAreNotTheOldOnes) {
  initialise();
  StateFile file = state();
  Sleeper sleeper;
  ASSERT_TRUE(file.load(0, sleeper.pid(), kMiB, 10));

  // A reused pid looks like this: the process of that pid started at another time.
  ASSERT_TRUE(file.change(0, [](GpuState& gpu) {
    for (ProcessEntry& entry : gpu.processes) {
      if (entry.pid.load() != 0) entry.start_ticks.fetch_add(1);
    }
  }));

  EXPECT_EQ(listed(0), 0u);
}

TEST_F(Processes, ThatLingerStayUntilTheyAreCleared) {
  initialise();
  StateFile file = state();
  Sleeper sleeper;
  ASSERT_TRUE(file.load(0, sleeper.pid(), kMiB, 0, StateFile::Presence::kLingering));
  const std::uint64_t pid = sleeper.pid();

  sleeper.end();

  EXPECT_EQ(listed(0), 1u);
  ASSERT_TRUE(file.clear(0, pid));
  EXPECT_EQ(listed(0), 0u);
}

TEST_F(Processes, AreRegisteredByTheSmallProgram) {
  initialise();
  Sleeper sleeper;
  const std::string both = uuid(1) + "," + uuid(5);
  const std::string pid = std::to_string(sleeper.pid());

  EXPECT_EQ(run({GPU_EMULATOR_REGISTER, "enter", state_path(), both, pid}), 0);
  EXPECT_EQ(listed(1), 1u);
  EXPECT_EQ(listed(5), 1u);
  EXPECT_EQ(listed(2), 0u);
  EXPECT_EQ(run({GPU_EMULATOR_REGISTER, "leave", state_path(), both, pid}), 0);
  EXPECT_EQ(listed(1) + listed(5), 0u);
}

TEST_F(Processes, ThatAreRegisteredKeepWhatTheyUse) {
  initialise();
  Sleeper sleeper;
  StateFile file = state();
  ASSERT_TRUE(file.load(0, sleeper.pid(), 3 * kMiB, 10));

  EXPECT_EQ(run({GPU_EMULATOR, "register", "--state", state_path(), "--uuid", uuid(0), "--pid",
                 std::to_string(sleeper.pid())}),
            0);

  EXPECT_EQ(read_gpu(file.state().gpus[0]).used_bytes, 3 * kMiB);
}

TEST_F(Processes, AreNotRegisteredWhereTheyCannotBe) {
  Sleeper sleeper;
  const std::string pid = std::to_string(sleeper.pid());
  std::ofstream(root_ + "/foreign") << "no state";

  EXPECT_EQ(run({GPU_EMULATOR_REGISTER, "enter", state_path(), uuid(0) + ",GPU-none", pid}), 3);
  EXPECT_EQ(read_gpu(state().state().gpus[0]).process_count, 0u) << "all or none";
  EXPECT_EQ(run({GPU_EMULATOR_REGISTER, "enter", root_ + "/foreign", uuid(0), pid}), 1);
  EXPECT_EQ(run({GPU_EMULATOR_REGISTER, "enter", root_ + "/none", uuid(0), pid}), 1);
  EXPECT_EQ(run({GPU_EMULATOR_REGISTER, "enter", "/dev/null", uuid(0), pid}), 1);
  EXPECT_EQ(run({GPU_EMULATOR_REGISTER, "enter", state_path(), uuid(0), "0"}), 2);
  EXPECT_EQ(run({GPU_EMULATOR_REGISTER, "enter", state_path(), uuid(0), "1x"}), 2);
  EXPECT_EQ(run({GPU_EMULATOR_REGISTER}), 2);
}

TEST_F(Processes, AreRefusedARecoveryActionThatTheDriverIsTooOldFor) {
  EXPECT_EQ(run({GPU_EMULATOR, "inject", "recovery", "node-reboot", "--data-dir", root_, "--gpu",
                 "n1:0"}),
            4);
  EXPECT_EQ(state().state().gpus[0].recovery_action.load(), 0u);
}

TEST_F(Processes, MayBeToldOfEveryFaultOnTheCommandLine) {
  open_board("hgx-h200");
  const auto inject = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {GPU_EMULATOR, "inject"});
    words.insert(words.end(), {"--data-dir", root_, "--gpu", "n1:0"});
    return run(words);
  };
  EXPECT_EQ(inject({"xid", "48"}), 0);
  EXPECT_EQ(inject({"ecc", "corrected", "3"}), 0);
  EXPECT_EQ(inject({"ecc", "uncorrected", "1"}), 0);
  EXPECT_EQ(inject({"temperature", "88"}), 0);
  EXPECT_EQ(inject({"throttle", "hw-thermal", "sync-boost"}), 0);
  EXPECT_EQ(inject({"recovery", "node-reboot"}), 0);
  EXPECT_EQ(inject({"replays", "4"}), 0);
  EXPECT_EQ(inject({"slow", "0"}), 0);
  EXPECT_EQ(inject({"work", "50"}), 0);
  EXPECT_EQ(inject({"linger", "--pid", "4194303", "--memory", "1G"}), 0);
  EXPECT_EQ(inject({"lost"}), 0);
  const StateFile file = state();
  const GpuState& now = file.state().gpus[0];
  EXPECT_EQ(now.last_xid.load(), 48u);
  EXPECT_EQ(now.ecc_errors[kEccVolatile][kEccCorrected].load(), 3u);
  EXPECT_EQ(now.ecc_errors[kEccAggregate][kEccUncorrected].load(), 1u);
  EXPECT_EQ(now.injected_temperature_c.load(), 88u);
  EXPECT_EQ(now.injected_throttle.load(), kThrottleHwThermal | 0x10);
  EXPECT_EQ(now.recovery_action.load(), 2u);
  EXPECT_EQ(now.pcie_replays.load(), 4u);
  EXPECT_EQ(now.answer_work_us.load(), 50u);
  EXPECT_EQ(now.answer.load(), static_cast<std::uint32_t>(kGpuIsLost));
  EXPECT_EQ(read_gpu(now).process_count, 1u);

  EXPECT_EQ(inject({"xid", "abc"}), 2);
  EXPECT_EQ(inject({"xid", "0"}), 2);
  EXPECT_EQ(inject({"ecc", "fatal", "1"}), 2);
  EXPECT_EQ(inject({"ecc", "corrected"}), 2);
  EXPECT_EQ(inject({"temperature", "200"}), 2);
  EXPECT_EQ(inject({"throttle"}), 2);
  EXPECT_EQ(inject({"work", "-1"}), 2);
  EXPECT_EQ(inject({"fire"}), 2);
}

TEST_F(Processes, ThatEndedAreNotRegistered) {
  initialise();
  Sleeper sleeper;
  sleeper.kill_unreaped();
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(sleeper.pid()), &info, WEXITED | WNOWAIT), 0);

  EXPECT_EQ(
      run({GPU_EMULATOR_REGISTER, "enter", state_path(), uuid(0), std::to_string(sleeper.pid())}),
      0);

  EXPECT_EQ(listed(0), 0u);
}

// Many processes enter, change and leave at once; none gets in another's way.
TEST_F(Processes, MayChangeOneBoardAllAtOnce) {
  constexpr int kWriters = 8;
  constexpr std::uint64_t kRounds = 200;
  std::vector<pid_t> writers;
  for (int i = 0; i < kWriters; ++i) {
    const pid_t pid = fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      auto file = StateFile::open(state_path(), StateFile::Access::kWrite);
      if (!file) _exit(1);
      const auto self = static_cast<std::uint64_t>(getpid());
      for (std::uint64_t round = 1; round <= kRounds; ++round) {
        if (!file->load(0, self, round * kMiB, 1)) _exit(2);
        if (round % 50 == 0 && !file->raise(0, 0x8, round)) _exit(3);
        if (round % 10 == 0 && !file->clear(0, self)) _exit(4);
      }
      _exit(file->load(0, self, kMiB, 1) &&
                    file->load(1, 4'000'000 + self % 1000, kMiB, 1, StateFile::Presence::kLingering)
                ? 0
                : 5);
    }
    writers.push_back(pid);
  }
  for (const pid_t pid : writers) {
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }

  const StateFile file = state();
  EXPECT_EQ(file.state().gpus[0].sequence.load() % 2, 0u);
  EXPECT_EQ(file.state().event_count.load(), kWriters * kRounds / 50);
  EXPECT_EQ(read_gpu(file.state().gpus[1]).process_count, static_cast<unsigned>(kWriters));
  EXPECT_EQ(read_gpu(file.state().gpus[0]).process_count, 0u) << "all have ended";
}

TEST_F(Processes, AreGivenWithTheirUtilizationInTwoSteps) {
  initialise();
  StateFile file = state();
  Sleeper sleeper;
  const auto read =
      find<decltype(nvmlDeviceGetProcessUtilization)>("nvmlDeviceGetProcessUtilization");
  unsigned count = 0;
  EXPECT_EQ(read(gpu(0), nullptr, &count, 0), kNotFound) << "nothing to tell";
  ASSERT_TRUE(file.load(0, sleeper.pid(), kMiB, 35));
  ProcessUtilizationSample samples[4];

  EXPECT_EQ(read(gpu(0), nullptr, &count, 0), kInsufficientSize);
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(read(gpu(0), samples, &count, 0), kSuccess);
  EXPECT_EQ(samples[0].pid, sleeper.pid());
  EXPECT_EQ(samples[0].sm_util, 35u);
  EXPECT_EQ(read(gpu(0), samples, &count, samples[0].time_stamp + 60'000'000), kNotFound);
}

TEST_F(Processes, AreListedInDetailForTheirMode) {
  initialise();
  StateFile file = state();
  Sleeper sleeper;
  ASSERT_TRUE(file.load(0, sleeper.pid(), kMiB, 35));
  const auto read = find<decltype(nvmlDeviceGetRunningProcessDetailList)>(
      "nvmlDeviceGetRunningProcessDetailList");
  ProcessDetail details[2] = {};
  ProcessDetailList list{.version = version_of<ProcessDetailList>(1), .mode = 0};

  EXPECT_EQ(read(gpu(0), &list), kInsufficientSize);
  list.processes = details;
  EXPECT_EQ(read(gpu(0), &list), kSuccess);
  EXPECT_EQ(details[0].pid, sleeper.pid());
  list.mode = 1;  // graphics
  EXPECT_EQ(read(gpu(0), &list), kSuccess);
  EXPECT_EQ(list.count, 0u);
  list.mode = 3;
  EXPECT_EQ(read(gpu(0), &list), kInvalidArgument);
  list.version = 0;
  list.mode = 0;
  EXPECT_EQ(read(gpu(0), &list), kArgumentVersionMismatch);
}

TEST_F(Processes, MakeEnergyThatOnlyGrows) {
  initialise();
  const auto energy =
      find<decltype(nvmlDeviceGetTotalEnergyConsumption)>("nvmlDeviceGetTotalEnergyConsumption");
  StateFile file = state();
  unsigned long long before = 0;
  unsigned long long with_load = 0;
  unsigned long long after = 0;
  // A state that was settled some time ago, with one load since.
  const std::uint64_t ago_ns =
      std::min<std::uint64_t>(now_ns(CLOCK_BOOTTIME) / 2, 3'600'000'000'000);
  ASSERT_EQ(energy(gpu(0), &before), kSuccess);
  {
    Sleeper sleeper;
    ASSERT_TRUE(file.load(0, sleeper.pid(), 0, 100));
    ASSERT_TRUE(file.change(0, [&](GpuState& gpu) { gpu.integrals.at_ns.fetch_sub(ago_ns); }));
    ASSERT_EQ(energy(gpu(0), &with_load), kSuccess);
  }
  ASSERT_EQ(energy(gpu(0), &after), kSuccess);

  // Watts times nanoseconds are 1e-6 mJ; the calls themselves take some time as well.
  const double expected_mj = 700.0 * static_cast<double>(ago_ns) / 1e6;
  EXPECT_GE(static_cast<double>(with_load - before), expected_mj * 0.99);
  EXPECT_LE(static_cast<double>(with_load - before), expected_mj + 700.0 * 10'000);
  EXPECT_GE(after, with_load);
}

}  // namespace
}  // namespace gpu_emulator
