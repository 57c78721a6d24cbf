#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "execution/process/channel_fixture.h"
#include "model/job_spec.h"
#include "os/clock.h"
#include "os/small_file.h"

// Jobs that take turns on a GPU: the engine, the launcher, keepers of turns, supervisors and real
// processes in real cgroups.

namespace gpu_platform::execution::testing {
namespace {

constexpr base::GpuShare kQuarter{1750};
constexpr base::GpuShare kThreeQuarters{5250};
constexpr base::Duration kShortSlice = base::milliseconds(100);
constexpr base::Duration kLongSlice = base::seconds(60);  // no turn ends by itself
constexpr std::int64_t kShortestTurn = 20'000'000;

class TimeSliceTest : public ChannelTest {
 protected:
  StartOrder part(StartOrder start, base::GpuShare share, base::Duration slice) const {
    auto spec = std::make_shared<model::JobSpec>(*start.spec);
    spec->request.slice = slice;
    start.spec = spec;
    LaunchGpu gpu;
    gpu.info.uuid = "GPU-1";
    gpu.grant.share = share;
    gpu.grant.mode = model::ShareMode::kTimeSlice;
    start.nodes.front().gpus = {gpu};
    return start;
  }
  StartOrder busy(std::uint64_t job, base::GpuShare share, base::Duration slice) const {
    return part(shell(job, "while :; do :; done"), share, slice);
  }
  void begin(const StartOrder& start) {
    engine_->start(start);
    ASSERT_TRUE(observed_->wait_started(start.attempt));
  }

  std::string file_of(const StartOrder& job, const char* name) const {
    return os::read_small_file(AT_FDCWD, (cgroup_of(job.attempt) / name).c_str());
  }
  bool stands_still(const StartOrder& job) const {
    return os::number_after(file_of(job, "cgroup.events"), "frozen") == 1;
  }
  bool is_to_stand_still(const StartOrder& job) const {
    return file_of(job, "cgroup.freeze") == "1\n";
  }
  std::int64_t cpu_us(const StartOrder& job) const {
    return os::number_after(file_of(job, "cpu.stat"), "usage_usec");
  }
  bool has_turn(const StartOrder& job, const StartOrder& other) const {
    return eventually([&] { return stands_still(other) && !is_to_stand_still(job); });
  }
  void thaw(const StartOrder& job) const {
    os::write_small_file(AT_FDCWD, (cgroup_of(job.attempt) / "cgroup.freeze").c_str(), "0");
  }

  // 0: there is none. They share the node part's cgroup with the launcher.
  pid_t keeper() const {
    std::istringstream pids(read(engine_->node_part().detail + "/node/cgroup.procs"));
    for (pid_t pid = 0; pids >> pid;) {
      if (read("/proc/" + std::to_string(pid) + "/comm") == "gp-keeper\n") return pid;
    }
    return 0;
  }
  // The first job begins a turn with each new keeper, so that a test sees when there is one.
  void begin_with_a_turn_of(const StartOrder& second, const StartOrder& first) {
    begin(first);
    begin(second);
    ASSERT_TRUE(has_turn(first, second));
    thaw(second);
    ASSERT_TRUE(has_turn(second, first));
  }
};
INSTANTIATE_TEST_SUITE_P(Engine, TimeSliceTest, ::testing::Values(Mode::kCgroup),
                         [](const auto&) { return "Cgroup"; });

TEST_P(TimeSliceTest, BusyJobsShareAGpuByTheirParts) {
  const StartOrder small = busy(1, kQuarter, kShortSlice);
  const StartOrder large = busy(2, kThreeQuarters, kShortSlice);
  begin(small);
  begin(large);
  ASSERT_TRUE(eventually([&] { return stands_still(small) || stands_still(large); }));
  const std::int64_t small_before = cpu_us(small);
  const std::int64_t large_before = cpu_us(large);
  EXPECT_TRUE(eventually([&] {
    const std::int64_t start = os::monotonic_ns();
    const bool is_first = !stands_still(small);
    const bool is_second = !stands_still(large);
    const bool is_first_again = !stands_still(small);
    // Within less than a turn that is no switch between the looks.
    if (os::monotonic_ns() - start < kShortestTurn) {
      EXPECT_FALSE(is_first && is_second && is_first_again);
    }
    const auto used_by_small = static_cast<double>(cpu_us(small) - small_before);
    const auto used_by_large = static_cast<double>(cpu_us(large) - large_before);
    const double ratio = used_by_large / std::max(used_by_small, 1.0);
    return used_by_small + used_by_large >= 2e6 && ratio > 2 && ratio < 4.5;
  })) << cpu_us(small) - small_before
      << " " << cpu_us(large) - large_before;
}

TEST_P(TimeSliceTest, JobAloneOnItsGpuIsNeverFrozen) {
  const StartOrder alone = busy(1, kQuarter, kLongSlice);
  begin(alone);
  EXPECT_EQ(keeper(), 0);
  EXPECT_FALSE(is_to_stand_still(alone));
}

TEST_P(TimeSliceTest, TurnGoesOnWhenAJobHasEnded) {
  const StartOrder ends = part(shell(1, "until test -e go; do :; done"), kQuarter, kLongSlice);
  const StartOrder stays = busy(2, kThreeQuarters, kLongSlice);
  begin(ends);
  begin(stays);
  ASSERT_TRUE(has_turn(ends, stays));
  ::close(::open(path("go").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
  EXPECT_TRUE(observed_->wait_cleaned(ends.attempt));
  EXPECT_TRUE(eventually([&] { return keeper() == 0; }));
  EXPECT_FALSE(is_to_stand_still(stays));
}

// It is said again and again: that of a turn's first second is not heard.
TEST_P(TimeSliceTest, TurnIsGivenOnWhileTheGpuIsIdle) {
  const StartOrder first = busy(1, kQuarter, kLongSlice);
  const StartOrder second = busy(2, kThreeQuarters, kLongSlice);
  begin(first);
  begin(second);
  ASSERT_TRUE(has_turn(first, second));
  EXPECT_TRUE(eventually([&] {
    engine_->give_turn_on("GPU-1");
    return stands_still(first) && !is_to_stand_still(second);
  }));
}

TEST_P(TimeSliceTest, FrozenJobIsStoppedWithItsGrace) {
  const StartOrder has = busy(1, kQuarter, kLongSlice);
  const StartOrder waits = part(shell(2, "trap 'exit 7' TERM; echo > ready; while :; do :; done"),
                                kThreeQuarters, kLongSlice);
  begin(waits);
  ASSERT_TRUE(wait_for_file(path("ready")));
  begin(has);
  ASSERT_TRUE(has_turn(has, waits));
  engine_->stop({waits.attempt, false, base::seconds(600), model::EndReason::kCancelledBy});
  ASSERT_TRUE(observed_->wait_cleaned(waits.attempt));
  EXPECT_EQ(observed_->of(waits.attempt).ended.front().exit.code, 7) << "SIGTERM reached it";
}

TEST_P(TimeSliceTest, FrozenJobReachesItsTimeLimitAndItsEpilogRuns) {
  const StartOrder has = busy(1, kQuarter, kLongSlice);
  StartOrder waits = part(shell(2, "trap 'exit 7' TERM; echo > ready; while :; do :; done"),
                          kThreeQuarters, kLongSlice);
  waits.stop_grace = base::seconds(600);
  auto spec = std::make_shared<model::JobSpec>(*waits.spec);
  const std::string epilog = path("epilog.sh");
  std::ofstream(epilog) << "#!/bin/sh\necho > epilog\n";
  std::filesystem::permissions(epilog, std::filesystem::perms(0755));
  spec->epilog = epilog;
  waits.spec = spec;
  begin(waits);
  ASSERT_TRUE(wait_for_file(path("ready")));
  begin(has);
  ASSERT_TRUE(has_turn(has, waits));
  engine_->set_limit({waits.attempt, base::milliseconds(1)});
  ASSERT_TRUE(observed_->wait_cleaned(waits.attempt));
  const Ended ended = observed_->of(waits.attempt).ended.front();
  EXPECT_EQ(ended.reason, model::EndReason::kTimeLimit);
  EXPECT_EQ(ended.exit.code, 7);
  EXPECT_TRUE(wait_for_file(path("epilog")));
}

TEST_P(TimeSliceTest, FrozenJobIsKilledAtOnce) {
  const StartOrder has = busy(1, kQuarter, kLongSlice);
  const StartOrder waits = busy(2, kThreeQuarters, kLongSlice);
  begin(has);
  begin(waits);
  ASSERT_TRUE(has_turn(has, waits));
  engine_->stop({waits.attempt, true, {}, model::EndReason::kKilledBy});
  ASSERT_TRUE(observed_->wait_cleaned(waits.attempt));
  EXPECT_EQ(observed_->of(waits.attempt).ended.front().exit.signal, SIGKILL);
}

TEST_P(TimeSliceTest, SignalReachesAFrozenJob) {
  const StartOrder has = busy(1, kQuarter, kLongSlice);
  const StartOrder waits =
      part(shell(2, "trap 'echo > signal' USR1; echo > ready; while :; do :; done"), kThreeQuarters,
           kLongSlice);
  begin(waits);
  ASSERT_TRUE(wait_for_file(path("ready")));
  begin(has);
  ASSERT_TRUE(has_turn(has, waits));
  engine_->signal({waits.attempt, SIGUSR1});
  EXPECT_TRUE(wait_for_file(path("signal")));
  EXPECT_TRUE(has_turn(waits, has)) << "it has got the turn";
}

TEST_P(TimeSliceTest, CommandRunsInAFrozenJob) {
  const StartOrder has = busy(1, kQuarter, kLongSlice);
  const StartOrder waits = busy(2, kThreeQuarters, kLongSlice);
  begin(has);
  begin(waits);
  ASSERT_TRUE(has_turn(has, waits));
  const os::Descriptor channel = open_shell(waits, "echo inside; read line; echo $line");
  EXPECT_TRUE(send(channel, model::InputFrame{"typed\n"}));
  EXPECT_TRUE(send(channel, model::EndOfInputFrame{}));
  EXPECT_EQ(listen(channel).output, "inside\ntyped\n");
  EXPECT_TRUE(has_turn(waits, has)) << "nothing holds it awake any more but its turn";
}

TEST_P(TimeSliceTest, InputReachesAFrozenJob) {
  const StartOrder has = busy(1, kQuarter, kLongSlice);
  StartOrder waits =
      part(shell(2, "read line; echo got $line; while :; do :; done"), kThreeQuarters, kLongSlice);
  auto spec = std::make_shared<model::JobSpec>(*waits.spec);
  spec->takes_input = true;
  waits.spec = spec;
  begin(has);
  begin(waits);
  ASSERT_TRUE(has_turn(has, waits));
  const auto channel = open({waits.attempt, {}, std::nullopt});
  ASSERT_TRUE(channel.has_value()) << channel.error().message;
  EXPECT_TRUE(send(*channel, model::InputFrame{"typed\n"}));
  EXPECT_TRUE(eventually([&] { return output(waits) == "got typed\n"; }));
}

TEST_P(TimeSliceTest, KilledKeeperLeavesNothingFrozenAndIsReplaced) {
  const StartOrder first = busy(1, kQuarter, kLongSlice);
  const StartOrder second = busy(2, kThreeQuarters, kLongSlice);
  begin_with_a_turn_of(second, first);
  const pid_t killed = keeper();
  ASSERT_GT(killed, 0);
  kill(killed, SIGKILL);
  EXPECT_TRUE(has_turn(first, second));
  EXPECT_NE(keeper(), killed);
}

TEST_P(TimeSliceTest, KilledLauncherLeavesNothingFrozen) {
  const StartOrder first = busy(1, kQuarter, kLongSlice);
  const StartOrder second = busy(2, kThreeQuarters, kLongSlice);
  begin_with_a_turn_of(second, first);
  // As if both were killed at once: the keeper cannot thaw what it has frozen.
  const pid_t killed = keeper();
  ASSERT_GT(killed, 0);
  kill(killed, SIGSTOP);
  kill(static_cast<pid_t>(engine_->node_part().launcher_pid), SIGKILL);
  kill(killed, SIGKILL);
  EXPECT_TRUE(has_turn(first, second)) << "the next launcher was told who takes turns";
}

TEST_P(TimeSliceTest, DaemonThatHasGoneLeavesNothingFrozen) {
  const StartOrder first = busy(1, kQuarter, kLongSlice);
  const StartOrder second = busy(2, kThreeQuarters, kLongSlice);
  begin(first);
  begin(second);
  ASSERT_TRUE(has_turn(first, second));
  close_engine();
  EXPECT_TRUE(eventually([&] { return !is_to_stand_still(first) && !is_to_stand_still(second); }));
  open_engine();
  engine_->adopt({{first, model::AttemptState::kRunning}, {second, model::AttemptState::kRunning}});
  EXPECT_TRUE(has_turn(first, second)) << "adopted jobs take turns again";
}

// Cycles of share and release, with nothing left.
TEST_P(TimeSliceTest, NoKeeperIsLeftAfterManyJobs) {
  const StartOrder stays = busy(1, kQuarter, kShortSlice);
  begin(stays);
  for (std::uint64_t job = 2; job < 22; ++job) {
    EXPECT_EQ(run(part(shell(job, "exit 3"), kThreeQuarters, kShortSlice)).exit.code, 3);
  }
  EXPECT_TRUE(eventually([&] { return keeper() == 0; }));
  EXPECT_FALSE(is_to_stand_still(stays));
}

}  // namespace
}  // namespace gpu_platform::execution::testing
