#include "execution/process/process_engine.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "execution/process/attempt_files.h"
#include "execution/process/engine_fixture.h"
#include "execution/process/kept_output.h"
#include "model/job_spec.h"
#include "node/record.h"

namespace gpu_platform::execution::testing {
namespace {

using model::AttemptState;
using model::EndReason;
using model::Lost;

class OneEngine : public EngineTest {};

// These tests hold with and without cgroups.
class BothModes : public EngineTest, public ::testing::WithParamInterface<Mode> {
 protected:
  BothModes() : EngineTest(GetParam()) {}
};
INSTANTIATE_TEST_SUITE_P(Engine, BothModes, ::testing::Values(Mode::kCgroup, Mode::kAdvisory),
                         [](const auto& mode) {
                           return mode.param == Mode::kCgroup ? "Cgroup" : "Advisory";
                         });

// What every engine promises is in process_contract_test.cpp.

TEST_P(BothModes, SignalThatEndsAProgramIsTrue) {
  const Ended killed = run(shell(1, "kill -SEGV $$"));
  EXPECT_EQ(killed.exit.signal, SIGSEGV);
  EXPECT_FALSE(killed.exit.code.has_value());
  EXPECT_EQ(killed.reason, EndReason::kNone);
}

TEST_P(BothModes, StartedIsToldWithTheJobsPid) {
  const StartOrder start = shell(1, "echo $$ > pid; exec sleep 1000");
  engine_->start(start);
  ASSERT_TRUE(observed_->wait_started(start.attempt));
  const Started started = observed_->of(start.attempt).started.front();
  ASSERT_TRUE(eventually([&] { return !read(path("pid")).empty(); }));
  EXPECT_EQ(fmt::format("{}\n", started.pid), read(path("pid")));
  EXPECT_TRUE(started.at.is_set());
}

TEST_P(BothModes, AWarningOfMemoryIsInTheOutputThatIsKept) {
  const StartOrder start = shell(1, "echo before; touch there; exec sleep 1000");
  engine_->start(start);
  ASSERT_TRUE(observed_->wait_started(start.attempt));
  ASSERT_TRUE(wait_for_file(path("there")));
  engine_->warn_of_memory(start.attempt, base::kMiB * 23'654, base::kGiB * 20);
  EXPECT_TRUE(eventually([&] {
    return output(start).find(
               "before\n\n[gpu-platform: the job uses 23.1 GiB of GPU memory, and "
               "its part of the GPU has 20.0 GiB; it is stopped unless it uses less "
               "within seconds]\n") != std::string::npos;
  })) << output(start);
}

TEST_P(BothModes, DoubleForkedChildDoesNotOutliveItsJob) {
  StartOrder start = shell(1,
                           "setsid sh -c 'echo $$ > child; exec sleep 1000' < /dev/null & "
                           "while [ ! -s child ]; do sleep 0.01; done");
  // layers allow expires: it is to pass; what is to succeed does not wait for it
  start.stop_grace = base::milliseconds(50);
  EXPECT_EQ(run(start).exit.code, 0);
  EXPECT_FALSE(is_alive(std::stoi(read(path("child")))));
}

TEST_P(BothModes, EndIsToldBeforeLeftoversAreGone) {
  StartOrder start =
      shell(1,
            "setsid sh -c 'trap \"\" TERM; touch child; while :; do sleep 0.05; done' & "
            "while [ ! -e child ]; do sleep 0.01; done");
  start.stop_grace = base::hours(1);
  engine_->start(start);
  ASSERT_TRUE(observed_->wait_until([&] { return !observed_->of(start.attempt).ended.empty(); }));
  EXPECT_EQ(observed_->of(start.attempt).cleaned, 0);
  engine_->stop({start.attempt, true, {}, EndReason::kKilledBy});
  ASSERT_TRUE(observed_->wait_cleaned(start.attempt));
  EXPECT_EQ(observed_->of(start.attempt).ended.front().reason, EndReason::kNone);
}

TEST_P(BothModes, SupervisorKilledWhileTheDaemonIsAwayIsReportedAsUnknown) {
  const StartOrder start = order(1, {"/bin/sleep", "1000"});
  engine_->start(start);
  ASSERT_TRUE(observed_->wait_started(start.attempt));
  const auto pid = static_cast<int>(observed_->of(start.attempt).started.front().pid);
  close_engine();
  kill(static_cast<pid_t>(supervisor_pid(start.attempt)), SIGKILL);
  open_engine();
  adopt(start, AttemptState::kRunning);
  ASSERT_TRUE(observed_->wait_cleaned(start.attempt));
  EXPECT_EQ(observed_->of(start.attempt).ended.front().exit.lost, Lost::kUnknown);
  EXPECT_FALSE(is_alive(pid));
}

TEST_P(BothModes, JobEntersItsEmulatedBoardAtItsStartAndForEachDaemon) {
  std::mutex guard;
  std::vector<std::string> entered;  // guarded by guard
  close_engine();
  options_.enter_on_board = [&](const std::string& node, const std::vector<std::string>& uuids,
                                std::uint32_t pid) {
    const std::lock_guard lock(guard);
    entered.push_back(fmt::format("{} {} {}", node, fmt::join(uuids, ","), pid));
  };
  open_engine();
  StartOrder start = order(1, {"/bin/sleep", "1000"});
  start.nodes.front().node_name = "board";
  start.nodes.front().emulated = true;
  LaunchGpu gpu;
  gpu.info.uuid = "GPU-1";
  start.nodes.front().gpus = {gpu};
  engine_->start(start);
  ASSERT_TRUE(observed_->wait_started(start.attempt));
  const std::string line =
      fmt::format("board GPU-1 {}", observed_->of(start.attempt).started.front().pid);
  close_engine();
  EXPECT_EQ(entered, std::vector<std::string>{line});
  open_engine();
  adopt(start, AttemptState::kRunning);
  ASSERT_TRUE(observed_->wait_started(start.attempt));
  engine_->stop({start.attempt, true, {}, EndReason::kKilledBy});
  ASSERT_TRUE(observed_->wait_cleaned(start.attempt));
  close_engine();
  EXPECT_EQ(entered, (std::vector<std::string>{line, line}));
  options_.enter_on_board = nullptr;
  open_engine();
}

TEST_P(BothModes, StoppedSupervisorIsWokenByAnOrder) {
  const StartOrder start = order(1, {"/bin/sleep", "1000"});
  engine_->start(start);
  ASSERT_TRUE(observed_->wait_started(start.attempt));
  kill(static_cast<pid_t>(supervisor_pid(start.attempt)), SIGSTOP);
  engine_->stop({start.attempt, true, {}, EndReason::kKilledBy});
  ASSERT_TRUE(observed_->wait_cleaned(start.attempt));
  EXPECT_EQ(observed_->of(start.attempt).ended.front().exit.signal, SIGKILL);
  EXPECT_EQ(observed_->of(start.attempt).ended.front().reason, EndReason::kKilledBy);
}

TEST_P(BothModes, MissingExecutableGives127) {
  const Ended by_path = run(order(1, {"/no/such/program"}));
  EXPECT_EQ(by_path.exit.code, 127);
  EXPECT_EQ(by_path.reason, EndReason::kLaunchFailed);
  EXPECT_EQ(by_path.detail, "execute /no/such/program: No such file or directory");
  const Ended by_name = run(order(2, {"no-such-program"}));
  EXPECT_EQ(by_name.exit.code, 127);
  EXPECT_TRUE(observed_->of({model::JobId(2), 1}).started.empty());
}

TEST_P(BothModes, WhatCannotBeExecutedGives126) {
  EXPECT_EQ(run(order(1, {"/etc/hostname"})).exit.code, 126);
  EXPECT_EQ(run(order(2, {"/tmp"})).exit.code, 126);
}

TEST_P(BothModes, MissingDirectoryIsTheJobsFault) {
  StartOrder start = order(1, {"/bin/true"});
  auto spec = *start.spec;
  spec.workdir = "/no/such/directory";
  start.spec = std::make_shared<model::JobSpec>(spec);
  const Ended ended = run(start);
  EXPECT_EQ(ended.exit.code, 126);
  EXPECT_EQ(ended.detail, "change to directory /no/such/directory: No such file or directory");
}

TEST_P(BothModes, CommandIsFoundInThePathOfTheJob) {
  const std::string program = path("greet");
  const int fd = open(program.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0755);
  constexpr std::string_view kScript = "#!/bin/sh\necho hello $1\n";
  ASSERT_EQ(write(fd, kScript.data(), kScript.size()), static_cast<ssize_t>(kScript.size()));
  fchmod(fd, 0755);
  close(fd);
  environments_.by_ref["e"] = "PATH=/nowhere:" + work_ + std::string(1, '\0');
  StartOrder start = order(1, {"greet", "a b; exit 3"});
  auto spec = *start.spec;
  spec.environment_ref = "e";
  start.spec = std::make_shared<model::JobSpec>(spec);
  EXPECT_EQ(run(start).exit.code, 0);
  EXPECT_EQ(output(start), "hello a b; exit 3\n");
}

TEST_P(BothModes, OutputIsCompleteAndRotates) {
  options_.output_file_bytes = 100'000;
  options_.output_files = 3;
  open_engine();
  const StartOrder start = shell(1, "seq 1 100000; echo end >&2");
  EXPECT_EQ(run(start).exit.code, 0);

  std::string all;
  for (int i = 1; i <= 100000; ++i) all += fmt::format("{}\n", i);
  all += "end\n";
  const std::string file = kept_output_path(folder(), start.attempt);
  const std::uint64_t current = all.size() % 100'000;
  const std::uint64_t first_kept = all.size() - current - 200'000;
  std::string kept;
  auto range = read_kept_output(file, 0, 70'000);
  ASSERT_TRUE(range.has_value());
  EXPECT_EQ(range->offset, first_kept);
  for (std::uint64_t at = range->offset; !range->bytes.empty(); at += range->bytes.size()) {
    range = read_kept_output(file, at, 70'000);
    ASSERT_TRUE(range.has_value());
    ASSERT_EQ(range->offset, at);
    kept += range->bytes;
  }
  EXPECT_EQ(kept, all.substr(first_kept));
  EXPECT_FALSE(std::filesystem::exists(fmt::format("{}.{}", file, first_kept - 100'000)));
}

TEST_P(BothModes, SilentJobLeavesNoOutputFile) {
  const StartOrder start = order(1, {"/bin/true"});
  run(start);
  EXPECT_FALSE(std::filesystem::exists(kept_output_path(folder(), start.attempt)));
  const auto range = read_kept_output(kept_output_path(folder(), start.attempt), 0, 100);
  ASSERT_TRUE(range.has_value());
  EXPECT_EQ(range->bytes, "");
}

TEST_P(BothModes, OwnOutputFileIsAppendedTo) {
  StartOrder start = shell(1, "echo new; echo error >&2");
  auto spec = *start.spec;
  spec.output = "own.log";  // relative to the job's directory
  spec.umask = 077;
  start.spec = std::make_shared<model::JobSpec>(spec);
  const int fd = open(path("own.log").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
  ASSERT_EQ(write(fd, "old\n", 4), 4);
  fchmod(fd, 0666);
  close(fd);
  EXPECT_EQ(run(start).exit.code, 0);
  EXPECT_EQ(read(path("own.log")), "old\nnew\nerror\n");
}

TEST_P(BothModes, LargeEnvironmentReachesTheJob) {
  std::string environment;
  for (int i = 0; i < 9; ++i)
    environment += fmt::format("BIG{}={}", i, std::string(100'000, 'x')) + '\0';
  environments_.by_ref["e"] = environment;
  StartOrder start = shell(1, "echo ${#BIG0} ${#BIG8}");
  auto spec = *start.spec;
  spec.environment_ref = "e";
  start.spec = std::make_shared<model::JobSpec>(spec);
  EXPECT_EQ(run(start).exit.code, 0);
  EXPECT_EQ(output(start), "100000 100000\n");
}

TEST_P(BothModes, EmptyRecordOfADeadLauncherMayBeStartedAgain) {
  const StartOrder start = shell(1, "echo ran >> ran");
  const int fd = open((folder() + "/attempts/1-1").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  ASSERT_EQ(fchown(fd, mode_ == Mode::kAdvisory ? 34 : 0, 0), 0);
  close(fd);
  EXPECT_EQ(run(start).exit.code, 0);
  EXPECT_EQ(read(path("ran")), "ran\n");
}

TEST_P(BothModes, DamagedRecordIsUnknownAndNotStartedAgain) {
  const StartOrder start = shell(1, "echo ran >> ran");
  const int fd = open((folder() + "/attempts/1-1").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  const std::string damaged(node::kRecordSize, 'x');
  ASSERT_EQ(write(fd, damaged.data(), damaged.size()), static_cast<ssize_t>(damaged.size()));
  ASSERT_EQ(fchown(fd, mode_ == Mode::kAdvisory ? 34 : 0, 0), 0);
  close(fd);
  EXPECT_EQ(run(start).exit.lost, Lost::kUnknown);
  EXPECT_EQ(read(path("ran")), "");
}

TEST_P(BothModes, AttemptThatTheCoreDoesNotKnowIsEnded) {
  const StartOrder start = order(1, {"/bin/sleep", "1000"});
  engine_->start(start);
  ASSERT_TRUE(observed_->wait_started(start.attempt));
  const auto pid = static_cast<int>(observed_->of(start.attempt).started.front().pid);
  open_engine();
  engine_->adopt({});
  EXPECT_TRUE(eventually([&] { return list_attempts(folder()).empty(); }));
  EXPECT_FALSE(is_alive(pid));
  EXPECT_TRUE(observed_->of(start.attempt).ended.empty());
}

TEST_P(BothModes, ForgetRemovesTheMarkerAndKeepsTheOutput) {
  const StartOrder start = shell(1, "echo kept");
  run(start);
  engine_->forget({start.attempt});
  EXPECT_TRUE(eventually([&] { return list_attempts(folder()).empty(); }));
  EXPECT_EQ(output(start), "kept\n");
}

TEST_P(BothModes, RemovedOutputIsGoneWithAllItsFilesAndThatOfOtherJobsIsNot) {
  const StartOrder first = shell(1, "echo gone");
  const StartOrder second = shell(2, "echo kept");
  run(first);
  run(second);
  const std::string place = folder() + "/output/0/1";
  // Links that a hostile hand might put there are removed, and what they name is not.
  const std::string precious = path("precious");
  ASSERT_EQ(mkdir(precious.c_str(), 0700), 0);
  ASSERT_EQ(symlink(precious.c_str(), (place + "/1.log.7").c_str()), 0);
  ASSERT_TRUE(engine_->has_output(model::JobId(1)));
  engine_->remove_output({model::JobId(1), model::JobId(77)});
  EXPECT_TRUE(eventually([&] { return !engine_->has_output(model::JobId(1)); }));
  EXPECT_EQ(access(precious.c_str(), F_OK), 0);
  EXPECT_EQ(output(second), "kept\n");
  EXPECT_TRUE(has_kept_output(folder(), model::JobId(2)));
}

TEST_F(OneEngine, MarkersAreRemovedThoughTheLauncherDiedOnTheWay) {
  constexpr std::uint64_t kJobs = 50;
  engine_->adopt({});
  for (std::uint64_t job = 1; job <= kJobs; ++job) engine_->start(shell(job, "true"));
  for (std::uint64_t job = 1; job <= kJobs; ++job) {
    ASSERT_TRUE(observed_->wait_cleaned({model::JobId(job), 1})) << job;
  }
  // Stopped, it takes no order; all that is sent to it now is lost with it.
  const auto launcher = static_cast<pid_t>(engine_->node_part().launcher_pid);
  kill(launcher, SIGSTOP);
  for (std::uint64_t job = 1; job <= kJobs; ++job) engine_->forget({{model::JobId(job), 1}});
  kill(launcher, SIGKILL);
  EXPECT_TRUE(eventually([&] { return list_attempts(folder()).empty(); }));
}

TEST_P(BothModes, UsageOfTheWholeTreeIsTold) {
  const Ended ended = run(shell(1, "sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'"));
  EXPECT_GT(ended.usage.cpu_time, base::milliseconds(5));
  EXPECT_GT(ended.usage.peak_memory, base::Bytes(100'000));
}

// Each job appends its id to one file from inside; no id may be there twice after any deaths.
TEST_F(OneEngine, LaunchersKilledAtRandomStartEachAttemptOnce) {
  constexpr std::uint64_t kJobs = 200;
  for (std::uint64_t job = 1; job <= kJobs; ++job) {
    engine_->start(shell(job, "echo $GPU_PLATFORM_JOB_ID >> ran"));
    if (job % 16 == 0) {
      const std::uint32_t launcher = engine_->node_part().launcher_pid;
      kill(static_cast<pid_t>(launcher), SIGKILL);
      ASSERT_TRUE(eventually([&] { return engine_->node_part().launcher_pid != launcher; }));
    }
  }
  for (std::uint64_t job = 1; job <= kJobs; ++job) {
    const model::AttemptId attempt{model::JobId(job), 1};
    ASSERT_TRUE(observed_->wait_cleaned(attempt)) << job;
    const auto seen = observed_->of(attempt);
    EXPECT_EQ(seen.ended.front().exit.code, 0) << job << ": " << seen.ended.front().detail;
    EXPECT_TRUE(seen.in_order);
  }
  std::map<std::string, int> runs;
  std::istringstream lines(read(path("ran")));
  for (std::string line; std::getline(lines, line);) ++runs[line];
  EXPECT_EQ(runs.size(), kJobs);
  for (const auto& [job, count] : runs) EXPECT_EQ(count, 1) << job;
}

TEST_F(OneEngine, SupervisorsKilledAtRandomNeverMakeAJobRunTwice) {
  constexpr std::uint64_t kJobs = 100;
  for (std::uint64_t job = 1; job <= kJobs; ++job) {
    const StartOrder start = shell(job, "echo $GPU_PLATFORM_JOB_ID >> ran");
    engine_->start(start);
    if (job % 3 == 0) kill(static_cast<pid_t>(supervisor_pid(start.attempt)), SIGKILL);
  }
  for (std::uint64_t job = 1; job <= kJobs; ++job) {
    const model::AttemptId attempt{model::JobId(job), 1};
    ASSERT_TRUE(observed_->wait_cleaned(attempt)) << job;
    const model::Exit exit = observed_->of(attempt).ended.front().exit;
    EXPECT_TRUE(exit.code == 0 || exit.lost == Lost::kUnknown) << job;
  }
  std::map<std::string, int> runs;
  std::istringstream lines(read(path("ran")));
  for (std::string line; std::getline(lines, line);) ++runs[line];
  EXPECT_GE(runs.size(), kJobs - kJobs / 3) << "those of the others ran";
  for (const auto& [job, count] : runs) EXPECT_EQ(count, 1) << job;
}

TEST_F(OneEngine, ManyStartsLeaveNoCgroupBehind) {
  const std::filesystem::path base = engine_->node_part().detail;
  for (std::uint64_t job = 1; job <= 300; ++job) engine_->start(order(job, {"/bin/true"}));
  for (std::uint64_t job = 1; job <= 300; ++job) {
    ASSERT_TRUE(observed_->wait_cleaned({model::JobId(job), 1})) << job;
    engine_->forget({{model::JobId(job), 1}});
  }
  EXPECT_TRUE(eventually([&] { return list_attempts(folder()).empty(); }));
  for (const auto& entry : std::filesystem::directory_iterator(base)) {
    if (!entry.is_directory()) continue;
    EXPECT_EQ(entry.path().filename(), "node");
  }
}

TEST_F(OneEngine, SupervisorStaysOutsideTheCgroupOfItsJob) {
  const StartOrder start = order(1, {"/bin/sleep", "1000"});
  engine_->start(start);
  ASSERT_TRUE(observed_->wait_started(start.attempt));
  const auto pid = observed_->of(start.attempt).started.front().pid;
  EXPECT_EQ(read(cgroup_of(start.attempt) / "cgroup.procs"), fmt::format("{}\n", pid));
}

TEST_F(OneEngine, JobRunsAsItsUserWithItsGroupsAndUmask) {
  StartOrder start = shell(1, "id -u; id -g; umask; touch made");
  auto spec = *start.spec;
  spec.uid = 34;
  spec.gid = 34;
  spec.umask = 027;
  start.spec = std::make_shared<model::JobSpec>(spec);
  EXPECT_EQ(run(start).exit.code, 0);
  EXPECT_EQ(output(start), "34\n34\n0027\n");
  struct stat about{};
  ASSERT_EQ(stat(path("made").c_str(), &about), 0);
  EXPECT_EQ(about.st_uid, 34u);
}

TEST_F(OneEngine, UnknownUserIsNotStarted) {
  StartOrder start = order(1, {"/bin/true"});
  auto spec = *start.spec;
  spec.uid = 3999999999;
  start.spec = std::make_shared<model::JobSpec>(spec);
  const Ended ended = run(start);
  EXPECT_EQ(ended.reason, EndReason::kLaunchFailed);
  EXPECT_EQ(ended.detail, "user 3999999999 is not known on this host");
}

TEST_F(OneEngine, JobInheritsNothingOfOurs) {
  const StartOrder start =
      shell(1,
            "ls /proc/self/fd | tr '\\n' ' '; readlink /proc/self/fd/0; "
            "grep -E 'Sig(Blk|Ign)' /proc/self/status; cat /proc/self/oom_score_adj");
  EXPECT_EQ(run(start).exit.code, 0);
  EXPECT_EQ(output(start),
            "0 1 2 3 /dev/null\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n" +
                read("/proc/self/oom_score_adj"));
}

// The launcher is one user's, as without root, and a job of another is refused rather than run as
// it.
class OneAdvisoryEngine : public EngineTest {
 protected:
  OneAdvisoryEngine() : EngineTest(Mode::kAdvisory) {}
};

TEST_F(OneAdvisoryEngine, JobOfAnotherUserIsRefused) {
  StartOrder start = order(1, {"/bin/true"});
  auto spec = *start.spec;
  spec.uid = 0;
  start.spec = std::make_shared<model::JobSpec>(spec);
  const Ended ended = run(start);
  EXPECT_EQ(ended.reason, EndReason::kLaunchFailed);
  EXPECT_EQ(ended.detail, "without root jobs run as user 34 only, not as 0");
}

}  // namespace
}  // namespace gpu_platform::execution::testing
