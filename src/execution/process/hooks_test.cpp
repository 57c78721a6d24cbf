// The site's and the user's own programs around an attempt, with real processes of this host.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <signal.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "execution/process/engine_fixture.h"
#include "model/job_spec.h"
#include "node/protocol.h"

namespace gpu_platform::execution::testing {
namespace {

using model::EndReason;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;

constexpr std::uint32_t kHookUser = 34;

class Hooks : public EngineTest {
 protected:
  // A shell script with these lines.
  std::string program(const std::string& file, const std::string& lines, mode_t mode = 0755) const {
    std::ofstream(file) << "#!/bin/sh\n" << lines << "\n";
    chmod(file.c_str(), mode);
    return file;
  }

  // Opens the engine anew with hooks of these lines; empty: none.
  void with_hooks(const std::string& prolog, const std::string& epilog,
                  std::uint64_t timeout_ms = 60'000) {
    site_ = root_ + "/site";
    mkdir(site_.c_str(), 0755);
    options_.hooks = {};
    if (!prolog.empty()) options_.hooks.prolog = program(site_ + "/prolog", prolog);
    if (!epilog.empty()) options_.hooks.epilog = program(site_ + "/epilog", epilog);
    options_.hooks.prolog_timeout_ms = timeout_ms;
    options_.hooks.epilog_timeout_ms = timeout_ms;
    open_engine();
  }

  template <class Change>
  static StartOrder changed(StartOrder start, const Change& change) {
    model::JobSpec spec = *start.spec;
    change(spec);
    start.spec = std::make_shared<model::JobSpec>(spec);
    return start;
  }
  static StartOrder as_user(StartOrder start) {
    return changed(std::move(start), [](model::JobSpec& spec) { spec.uid = spec.gid = kHookUser; });
  }
  StartOrder with_user_hooks(StartOrder start, const std::string& prolog,
                             const std::string& epilog) const {
    if (!prolog.empty()) program(path("before"), prolog);
    if (!epilog.empty()) program(path("after"), epilog);
    return changed(std::move(start), [&](model::JobSpec& spec) {
      if (!prolog.empty()) spec.prolog = "before";
      if (!epilog.empty()) spec.epilog = path("after");
    });
  }

  std::string log() const { return read(path("log")); }
  std::string to_log(const std::string& what) const {
    return "echo " + what + " >> " + path("log") + "; ";
  }
  void stop(const StartOrder& start, bool without_grace = false) const {
    engine_->stop({start.attempt, without_grace, base::seconds(30), EndReason::kCancelledBy});
  }
  Ended end_of(const StartOrder& start) const {
    EXPECT_TRUE(observed_->wait_cleaned(start.attempt));
    const auto seen = observed_->of(start.attempt);
    EXPECT_TRUE(seen.in_order);
    EXPECT_EQ(seen.ended.size(), 1u);
    return seen.ended.empty() ? Ended{} : seen.ended.front();
  }
  std::string epilog_failure(const StartOrder& start) const {
    return observed_->of(start.attempt).epilog_failure;
  }

  std::string site_;
};

TEST_F(Hooks, SitesAndUsersAreRunAroundTheCommandInTheirOrder) {
  with_hooks(to_log("site-prolog"), to_log("site-epilog"));
  const StartOrder start = with_user_hooks(shell(1, to_log("command") + "exit 3"),
                                           to_log("user-prolog"), to_log("user-epilog"));
  const Ended ended = run(start);
  EXPECT_EQ(ended.exit.code, 3);
  EXPECT_EQ(ended.reason, EndReason::kNone);
  EXPECT_EQ(log(), "site-prolog\nuser-prolog\ncommand\nuser-epilog\nsite-epilog\n");
  EXPECT_EQ(observed_->of(start.attempt).started.size(), 1u);
  EXPECT_EQ(epilog_failure(start), "");
}

TEST_F(Hooks, OfTheSiteAreRootInTheJobsCgroupWithAnEnvironmentOfTheirOwn) {
  const std::string tell = "{ id -u; cat /proc/self/cgroup; env; pwd; } > ";
  with_hooks(tell + path("prolog.txt") + "; ls /tmp >> " + path("prolog.txt"),
             tell + path("epilog.txt"));
  environments_.by_ref["mine"] =
      std::string("LD_PRELOAD=/evil.so\0GPU_PLATFORM_SERVER=http://x\0SECRET=1\0", 61);
  StartOrder start = changed(as_user(shell(1, "kill -9 $$")),
                             [](model::JobSpec& spec) { spec.environment_ref = "mine"; });
  model::GpuInfo gpu;
  gpu.uuid = "GPU-x";
  start.nodes.front().gpus = {{.info = gpu, .grant = {.gpu_index = 5}}};
  run(start);
  for (const std::string& text : {read(path("prolog.txt")), read(path("epilog.txt"))}) {
    EXPECT_TRUE(text.starts_with("0\n")) << text;
    EXPECT_THAT(text, HasSubstr("/1-1\n"));
    EXPECT_THAT(text, HasSubstr("\n/\n"));
    EXPECT_THAT(text, HasSubstr("GPU_PLATFORM_JOB_ID=1\n"));
    EXPECT_THAT(text, HasSubstr("GPU_PLATFORM_ATTEMPT=1\n"));
    EXPECT_THAT(text, HasSubstr("GPU_PLATFORM_UID=34\n"));
    EXPECT_THAT(text, HasSubstr("GPU_PLATFORM_GID=34\n"));
    EXPECT_THAT(text, HasSubstr("GPU_PLATFORM_USER=backup\n"));
    EXPECT_THAT(text, HasSubstr("GPU_PLATFORM_WORKDIR=" + work_ + "\n"));
    EXPECT_THAT(text, HasSubstr("GPU_PLATFORM_GPUS=5\n"));
    EXPECT_THAT(text, HasSubstr("CUDA_VISIBLE_DEVICES=0\n"));
    EXPECT_THAT(text, HasSubstr("GPU_PLATFORM_GPU_UUIDS=GPU-x\n"));
    EXPECT_THAT(text, HasSubstr("PATH=/usr/local/sbin"));
    for (const char* foreign : {"LD_PRELOAD", "SECRET", "GPU_PLATFORM_SERVER", "JOB_NAME"}) {
      EXPECT_THAT(text, Not(HasSubstr(foreign)));
    }
  }
  EXPECT_THAT(read(path("prolog.txt")), Not(HasSubstr("GPU_PLATFORM_END")));
  EXPECT_THAT(read(path("epilog.txt")), HasSubstr("GPU_PLATFORM_SIGNAL=9\n"));
  EXPECT_THAT(read(path("epilog.txt")), HasSubstr("GPU_PLATFORM_END=FAILED\n"));
  // The host's /tmp, not the job's.
  EXPECT_THAT(read(path("prolog.txt")), HasSubstr(root_.substr(5) + "\n"));
}

TEST_F(Hooks, OfTheSiteCannotOpenTheNeighboursGpu) {
  const std::string own = path("own");
  const std::string neighbours = path("neighbours");
  ASSERT_EQ(mknod(own.c_str(), S_IFCHR | 0666, makedev(node::kGpuMajor, 3)), 0);
  ASSERT_EQ(mknod(neighbours.c_str(), S_IFCHR | 0666, makedev(node::kGpuMajor, 4)), 0);
  const auto try_open = [](const std::string& file) {
    return "dd if=" + file + " of=/dev/null count=0 2>&1 | grep -c 'Operation not permitted'; ";
  };
  const std::string tries = "{ " + try_open(own) + try_open(neighbours) + "} >> " + path("log");
  with_hooks(tries, tries);
  StartOrder start = shell(1, "true");
  model::GpuInfo gpu;
  gpu.minor = 3;
  start.nodes.front().gpus = {{.info = gpu}};
  run(start);
  EXPECT_EQ(log(), "0\n1\n0\n1\n");
}

TEST_F(Hooks, AFailedPrologStartsNothingAndSaysWhy) {
  with_hooks("echo GPU is cold; exit 7", to_log("epilog $GPU_PLATFORM_END"));
  const StartOrder start = shell(1, to_log("command"));
  const Ended ended = run(start);
  EXPECT_EQ(ended.reason, EndReason::kPrologFailed);
  EXPECT_EQ(ended.exit, model::Exit{});
  EXPECT_EQ(ended.detail, "the site's prolog: exit code 7: GPU is cold");
  EXPECT_EQ(log(), "epilog PROLOG_FAILED\n");
  EXPECT_TRUE(observed_->of(start.attempt).started.empty());
  EXPECT_EQ(read(folder() + "/output/" + node::output_folder(start.attempt) + "/1.prolog"),
            "GPU is cold\n");
  EXPECT_EQ(output(start), "");
}

TEST_F(Hooks, AnEpilogThatFailsIsToldAndChangesNoEnd) {
  with_hooks("", "echo no $GPU_PLATFORM_EXIT_CODE; exit 2");
  const StartOrder start = shell(1, "exit 0");
  const Ended ended = run(start);
  EXPECT_EQ(ended.exit.code, 0);
  EXPECT_EQ(ended.detail, "");
  EXPECT_EQ(epilog_failure(start), "exit code 2: no 0");
}

TEST_F(Hooks, OutOfTimeTheyAreKilledWithAllThatTheyStarted) {
  const std::string hang = "setsid sleep 1000 & sleep 1000";
  with_hooks(hang, hang, 1000);
  const StartOrder start = shell(1, "true");
  const Ended ended = run(start);
  EXPECT_EQ(ended.reason, EndReason::kPrologFailed);
  EXPECT_EQ(ended.detail, "the site's prolog: not done after 1 s, killed");
  EXPECT_EQ(epilog_failure(start), "not done after 1 s, killed");
}

TEST_F(Hooks, AStopDuringThePrologEndsItAndTheAttempt) {
  with_hooks("touch " + path("begun") + "; trap '' TERM; sleep 1000", to_log("epilog"));
  const StartOrder start = shell(1, to_log("command"));
  engine_->start(start);
  ASSERT_TRUE(wait_for_file(path("begun")));
  stop(start);
  const Ended ended = end_of(start);
  EXPECT_EQ(ended.reason, EndReason::kLaunchFailed);
  EXPECT_EQ(ended.detail, "stopped during the site's prolog");
  EXPECT_EQ(log(), "epilog\n");
}

TEST_F(Hooks, TheEpilogRunsAfterACancelAKillAndTheTimeLimit) {
  with_hooks("", to_log("$GPU_PLATFORM_JOB_ID $GPU_PLATFORM_END $GPU_PLATFORM_SIGNAL"));
  const StartOrder cancelled = shell(1, "sleep 1000");
  const StartOrder killed = shell(2, "sleep 1000");
  StartOrder limited = shell(3, "sleep 1000");
  // layers allow expires: it is to pass; what is to succeed does not wait for it
  limited.time_limit = base::milliseconds(200);
  for (const StartOrder& start : {cancelled, killed}) {
    engine_->start(start);
    ASSERT_TRUE(observed_->wait_started(start.attempt));
    stop(start, start.attempt == killed.attempt);
    end_of(start);
  }
  EXPECT_EQ(run(limited).reason, EndReason::kTimeLimit);
  EXPECT_EQ(log(), "1 STOPPED 15\n2 STOPPED 9\n3 TIME_LIMIT 15\n");
}

TEST_F(Hooks, TheEpilogComesOnlyWhenNoProcessIsLeftAndNothingIsFreeBefore) {
  mkfifo(path("gate").c_str(), 0600);
  // Only this test's own: it may run twice at a time on a host.
  const std::string left = fmt::format("leftover-{}", ::getpid());
  with_hooks("", "cat /proc/self/cgroup > /dev/null; pgrep -f " + left + " >> " + path("log") +
                     "; touch " + path("begun") + "; cat " + path("gate"));
  StartOrder start = shell(1, "setsid sh -c 'trap \"\" TERM; touch child; sleep 1000; : " + left +
                                  "' & while [ ! -e child ]; do sleep 0.01; done");
  // layers allow expires: it is to pass; what is to succeed does not wait for it
  start.stop_grace = base::milliseconds(200);
  engine_->start(start);
  ASSERT_TRUE(wait_for_file(path("begun")));
  EXPECT_TRUE(observed_->wait_until([&] { return !observed_->of(start.attempt).ended.empty(); }));
  EXPECT_EQ(observed_->of(start.attempt).cleaned, 0);
  EXPECT_EQ(log(), "");
  std::ofstream(path("gate")) << "go\n";
  EXPECT_TRUE(observed_->wait_cleaned(start.attempt));
}

TEST_F(Hooks, BothAreRunWhileTheDaemonIsAway) {
  mkfifo(path("gate").c_str(), 0600);
  with_hooks("touch " + path("begun") + "; cat " + path("gate") + "; " + to_log("prolog"),
             to_log("epilog"));
  const StartOrder start = shell(1, to_log("command"));
  engine_->start(start);
  ASSERT_TRUE(wait_for_file(path("begun")));
  close_engine();
  std::ofstream(path("gate")) << "go\n";
  EXPECT_TRUE(eventually([&] { return log() == "prolog\ncommand\nepilog\n"; }));
  open_engine();
  adopt(start, model::AttemptState::kRequested);
  EXPECT_EQ(end_of(start).exit.code, 0);
}

TEST_F(Hooks, OfAKilledSupervisorAreKilledToo) {
  const std::string hang = "echo $$ >> " + path("pids") + "; touch " +
                           path("$GPU_PLATFORM_HOOK-$GPU_PLATFORM_JOB_ID") + "; exec sleep 1000";
  with_hooks("[ $GPU_PLATFORM_JOB_ID = 2 ] || { " + hang + "; }",
             "[ $GPU_PLATFORM_JOB_ID = 2 ] || { " + to_log("epilog $GPU_PLATFORM_END") +
                 "exit; }; " + hang);
  const StartOrder in_prolog = shell(1, to_log("command"));
  engine_->start(in_prolog);
  ASSERT_TRUE(wait_for_file(path("prolog-1")));
  kill(static_cast<pid_t>(supervisor_pid(in_prolog.attempt)), SIGKILL);
  EXPECT_EQ(end_of(in_prolog).exit.lost, model::Lost::kUnknown);
  const StartOrder in_epilog = shell(2, "exit 3");
  engine_->start(in_epilog);
  ASSERT_TRUE(wait_for_file(path("epilog-2")));
  kill(static_cast<pid_t>(supervisor_pid(in_epilog.attempt)), SIGKILL);
  EXPECT_EQ(end_of(in_epilog).exit.code, 3);
  EXPECT_EQ(log(), "epilog SUPERVISOR_LOST\n");
  EXPECT_EQ(epilog_failure(in_epilog), "its supervisor was lost while it ran, not repeated");
  std::ifstream pids(path("pids"));
  int found = 0;
  for (int pid = 0; pids >> pid; ++found) {
    EXPECT_TRUE(eventually([&] { return !is_alive(pid); })) << pid;
  }
  EXPECT_EQ(found, 2);
}

TEST_F(Hooks, TheEpilogOfALostSupervisorRunsOnceInTheJobsGroupsAndItsFailureIsTold) {
  with_hooks("", "cat /proc/self/cgroup; " + to_log("$GPU_PLATFORM_END") +
                     "setsid sleep 1000 & echo $! > " + path("left") + "; echo bad; exit 4");
  const StartOrder start = as_user(shell(1, "sleep 1000"));
  engine_->start(start);
  ASSERT_TRUE(observed_->wait_started(start.attempt));
  kill(static_cast<pid_t>(supervisor_pid(start.attempt)), SIGKILL);
  EXPECT_EQ(end_of(start).exit.lost, model::Lost::kUnknown);
  EXPECT_EQ(log(), "SUPERVISOR_LOST\n");
  EXPECT_THAT(epilog_failure(start), MatchesRegex("exit code 4: .*bad"));
  EXPECT_THAT(read(folder() + "/output/" + node::output_folder(start.attempt) + "/1.epilog"),
              HasSubstr("/1-1\n"));
  int left = 0;
  std::ifstream(path("left")) >> left;
  EXPECT_TRUE(eventually([&] { return !is_alive(left); }));
}

TEST_F(Hooks, TheEpilogOfALostSupervisorIsToldAnEndThatWasRecorded) {
  with_hooks("", to_log("$GPU_PLATFORM_END $GPU_PLATFORM_EXIT_CODE"));
  StartOrder start = shell(1,
                           "setsid sh -c 'trap \"\" TERM; touch child; sleep 1000' & "
                           "while [ ! -e child ]; do sleep 0.01; done; exit 3");
  start.stop_grace = base::seconds(100);
  engine_->start(start);
  ASSERT_TRUE(observed_->wait_until([&] { return !observed_->of(start.attempt).ended.empty(); }));
  kill(static_cast<pid_t>(supervisor_pid(start.attempt)), SIGKILL);
  EXPECT_EQ(end_of(start).exit.code, 3);
  EXPECT_EQ(log(), "FAILED 3\n");
}

TEST_F(Hooks, OfTheSiteThatOthersCouldChangeAreRefused) {
  with_hooks("true", "");
  const std::string file = options_.hooks.prolog;
  const auto refusal = [&] {
    auto opened = ProcessEngine::open(options_, environments_, *observed_);
    return opened ? std::string("opened") : opened.error().message;
  };
  close_engine();
  chmod(file.c_str(), 0775);
  EXPECT_THAT(refusal(), HasSubstr("execution.prolog: " + file + " can be written to by others"));
  chmod(file.c_str(), 0644);
  EXPECT_THAT(refusal(), HasSubstr("is not executable"));
  chmod(file.c_str(), 0755);
  ASSERT_EQ(chown(file.c_str(), kHookUser, 0), 0);
  EXPECT_THAT(refusal(), HasSubstr("belongs to user 34"));
  ASSERT_EQ(chown(file.c_str(), 0, 0), 0);
  chmod(site_.c_str(), 0777);
  EXPECT_THAT(refusal(), HasSubstr(site_ + " can be written to by others"));
  chmod(site_.c_str(), 0755);
  options_.hooks.prolog = site_;
  EXPECT_THAT(refusal(), HasSubstr("is not a regular file"));
  options_.hooks.prolog = "prolog";
  EXPECT_THAT(refusal(), HasSubstr("is not an absolute path"));
  options_.hooks.prolog = file;
  EXPECT_EQ(refusal(), "opened");
  open_engine();
}

TEST_F(Hooks, AFileThatWasSpoiledMeanwhileIsNotRun) {
  with_hooks(to_log("prolog"), "");
  chmod(options_.hooks.prolog.c_str(), 0777);
  const Ended ended = run(shell(1, to_log("command")));
  EXPECT_EQ(ended.reason, EndReason::kPrologFailed);
  EXPECT_THAT(ended.detail, HasSubstr("can be written to by others"));
  EXPECT_EQ(log(), "");
  chmod(options_.hooks.prolog.c_str(), 0755);
}

TEST_F(Hooks, OfTheUserShareEnvironmentFoldersAndOutputOfTheJob) {
  environments_.by_ref["mine"] = std::string("MINE=yes\0", 9);
  chmod(work_.c_str(), 0777);
  const StartOrder start = changed(
      with_user_hooks(as_user(shell(1, "echo command; cat /tmp/left /dev/shm/left; exit 4")),
                      "echo prolog $MINE $(id -u) $(pwd); echo tmp > /tmp/left; "
                      "echo shm > /dev/shm/left",
                      "echo epilog $MINE $(id -u) $GPU_PLATFORM_EXIT_CODE; cat /tmp/left"),
      [](model::JobSpec& spec) { spec.environment_ref = "mine"; });
  const Ended ended = run(start);
  EXPECT_EQ(ended.exit.code, 4);
  EXPECT_EQ(output(start),
            "prolog yes 34 " + work_ + "\ncommand\ntmp\nshm\nepilog yes 34 4\ntmp\n");
}

TEST_F(Hooks, OfTheUserWriteIntoTheJobsOwnFile) {
  std::ofstream(path("out")) << "old\n";
  const StartOrder start =
      changed(with_user_hooks(shell(1, "echo command"), "echo prolog", "echo epilog"),
              [&](model::JobSpec& spec) {
                spec.output = path("out");
                spec.truncate_output = true;
              });
  run(start);
  EXPECT_EQ(read(path("out")), "prolog\ncommand\nepilog\n");
}

TEST_F(Hooks, AUsersPrologThatFailsIsTheEndOfTheJob) {
  const StartOrder start = with_user_hooks(shell(1, to_log("command")), "exit 9", to_log("epilog"));
  const Ended ended = run(start);
  EXPECT_EQ(ended.exit.code, 9);
  EXPECT_EQ(ended.reason, EndReason::kNone);
  EXPECT_EQ(ended.detail, "its prolog: exit code 9");
  EXPECT_EQ(log(), "");
}

TEST_F(Hooks, AUsersPrologThatIsNotThereOrNoProgramIsToldAsACommandWouldBe) {
  const auto with_prolog = [&](std::uint64_t job, const std::string& prolog) {
    return run(changed(shell(job, to_log("command")),
                       [&](model::JobSpec& spec) { spec.prolog = prolog; }));
  };
  const Ended missing = with_prolog(1, "none");
  EXPECT_EQ(missing.exit.code, 127);
  EXPECT_EQ(missing.reason, EndReason::kLaunchFailed);
  EXPECT_THAT(missing.detail, HasSubstr("its prolog: execute ./none: No such file"));
  std::ofstream(path("data")) << "no program\n";
  EXPECT_EQ(with_prolog(2, path("data")).exit.code, 126);
  chmod(path("data").c_str(), 0755);
  EXPECT_EQ(with_prolog(3, path("data")).exit.code, 126);
  EXPECT_EQ(log(), "");
}

TEST_F(Hooks, ACommandThatIsNotThereIsToldAfterAUsersPrologToo) {
  const StartOrder start = with_user_hooks(order(1, {"/none"}), "setsid sleep 1000 & true", "");
  const Ended ended = run(start);
  EXPECT_EQ(ended.exit.code, 127);
  EXPECT_EQ(ended.reason, EndReason::kLaunchFailed);
  EXPECT_EQ(ended.detail, "execute /none: No such file or directory");
}

TEST_F(Hooks, AUsersEpilogThatFailsChangesNothing) {
  const StartOrder start = with_user_hooks(shell(1, "exit 0"), "", "exit 5");
  Ended ended = run(start);
  EXPECT_EQ(ended.exit.code, 0);
  EXPECT_EQ(ended.detail, "its epilog: exit code 5");
  ended = run(changed(shell(2, "exit 6"), [](model::JobSpec& spec) { spec.epilog = "none"; }));
  EXPECT_EQ(ended.exit.code, 6);
  EXPECT_THAT(ended.detail, HasSubstr("its epilog: execute ./none: No such file"));
}

TEST_F(Hooks, AUsersEpilogRunsInTheGraceThatIsLeft) {
  StartOrder start =
      with_user_hooks(shell(1, "sleep 1000"), "", to_log("$GPU_PLATFORM_SIGNAL") + "sleep 1000");
  start.stop_grace = base::seconds(6);
  // layers allow expires: it is to pass; what is to succeed does not wait for it
  start.time_limit = base::milliseconds(200);
  Ended ended = run(start);
  EXPECT_EQ(ended.reason, EndReason::kTimeLimit);
  EXPECT_EQ(ended.exit.signal, SIGTERM);
  EXPECT_EQ(ended.detail, "its epilog: signal 9");
  EXPECT_EQ(log(), "15\n");
  // Killed without grace there is no time for it.
  start = with_user_hooks(shell(2, "sleep 1000"), "", to_log("epilog"));
  engine_->start(start);
  ASSERT_TRUE(observed_->wait_started(start.attempt));
  stop(start, true);
  EXPECT_EQ(end_of(start).exit.signal, SIGKILL);
  EXPECT_EQ(log(), "15\n");
}

TEST_F(Hooks, TheTimeLimitCountsFromTheUsersPrologAndNotFromTheSites) {
  with_hooks("sleep 4", "");
  StartOrder start = shell(1, to_log("command"));
  start.time_limit = base::milliseconds(3900);
  EXPECT_EQ(run(start).exit.code, 0);
  start = with_user_hooks(shell(2, to_log("never")), "sleep 1000", "");
  // layers allow expires: it is to pass; what is to succeed does not wait for it
  start.time_limit = base::milliseconds(300);
  const Ended ended = run(start);
  EXPECT_EQ(ended.reason, EndReason::kTimeLimit);
  EXPECT_EQ(log(), "command\n");
}

TEST_F(Hooks, AStopDuringAUsersPrologThatEndsWellStartsNoCommand) {
  const StartOrder start = with_user_hooks(
      shell(1, to_log("command")),
      "trap 'exit 0' TERM; touch " + path("begun") + "; while :; do sleep 0.05; done", "");
  engine_->start(start);
  ASSERT_TRUE(wait_for_file(path("begun")));
  stop(start);
  const Ended ended = end_of(start);
  EXPECT_EQ(ended.reason, EndReason::kCancelledBy);
  EXPECT_EQ(ended.exit.signal, SIGTERM);
  EXPECT_EQ(log(), "");
}

}  // namespace
}  // namespace gpu_platform::execution::testing
