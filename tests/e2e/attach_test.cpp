#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "harness.h"
#include "terminal.h"

// Jobs that a person sits at, through the command line, on a real terminal where there is one.

namespace gpu_platform::e2e {
namespace {

constexpr const char* kDetach = "\x10\x11";  // Ctrl-P Ctrl-Q

class Attach : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(daemon.start()) << daemon.log(); }
  // Nothing is left in the place where supervisors are reached.
  void TearDown() override {
    EXPECT_TRUE(eventually([&] { return sessions() == 0; }));
  }

  std::vector<std::string> words(const std::vector<std::string>& arguments) const {
    std::vector<std::string> all = {program("gpu-platform"), "--server", "unix:" + daemon.socket()};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return all;
  }
  std::vector<std::string> run_pty(const std::vector<std::string>& command,
                                   const std::vector<std::string>& options = {}) const {
    std::vector<std::string> all = {"run", "--gpus", "0", "--pty"};
    all.insert(all.end(), options.begin(), options.end());
    all.emplace_back("--");
    all.insert(all.end(), command.begin(), command.end());
    return words(all);
  }
  std::vector<std::string> attach(const std::string& id) const {
    return words({"jobs", "attach", id});
  }
  // Returns the job's id once `run` has printed it.
  static std::string id_of(Terminal& terminal) {
    EXPECT_TRUE(terminal.shows("gpu-platform: job 1")) << terminal.screen();
    return "1";
  }
  bool is_in_state(const std::string& id, const std::string& state) {
    return eventually([&] { return daemon.job(id)["state"] == state; });
  }
  std::size_t sessions() const {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(daemon.node_folder() + "/run")) {
      if (entry.path().extension() == ".session") ++count;
    }
    return count;
  }

  Daemon daemon;
};

// ---- run --pty

TEST_F(Attach, ShellHasAPromptTheWindowsSizeAndAnExitCode) {
  Terminal terminal(run_pty({"/bin/sh", "-c", "PS1='ready> ' exec sh -i"}));
  ASSERT_TRUE(terminal.shows("ready> ")) << terminal.screen();
  EXPECT_FALSE(terminal.is_as_a_shell_has_it()) << "keys go to the job as they are";
  terminal.type("stty size\n");
  ASSERT_TRUE(terminal.shows("24 80")) << terminal.screen();
  terminal.resize(132, 50);
  terminal.type(
      "until [ \"$(stty size)\" = '50 132' ]; do sleep 0.1; done; echo $((40 + 1))-rows\n");
  ASSERT_TRUE(terminal.shows("41-rows")) << terminal.screen();
  terminal.type("exit 7\n");
  EXPECT_EQ(terminal.wait(), 7);
  EXPECT_TRUE(terminal.is_as_a_shell_has_it());
  EXPECT_EQ(daemon.job("1")["spec"]["kind"], "INTERACTIVE");
  EXPECT_EQ(daemon.job("1")["spec"]["terminal"], true);
  EXPECT_NE(daemon.cli({"jobs", "logs", "1"}).out.find("41-rows"), std::string::npos)
      << "what it showed is kept";
}

TEST_F(Attach, ControlCInterruptsTheProgramAndNotItsShell) {
  Terminal terminal(run_pty({"/bin/sh", "-c", "PS1='ready> ' exec sh -i"}));
  ASSERT_TRUE(terminal.shows("ready> "));
  // Said by a program that is in the foreground already.
  terminal.type("/bin/sh -c 'echo $((40 + 1))-about-to; exec sleep 1000'\n");
  ASSERT_TRUE(terminal.shows("41-about-to\r\n"));
  terminal.forget();
  terminal.type("\x03");
  ASSERT_TRUE(terminal.shows("ready> ")) << terminal.screen();
  terminal.type("echo $((40 + 2))-alive\n");
  ASSERT_TRUE(terminal.shows("42-alive")) << terminal.screen();
  terminal.type("exit\n");
  EXPECT_EQ(terminal.wait(), 0);
}

TEST_F(Attach, QuickJobShowsWhatItPrintedAndItsEnd) {
  Terminal terminal(run_pty({"/bin/sh", "-c", "echo quick; exit 9"}));
  EXPECT_EQ(terminal.wait(), 9);
  EXPECT_NE(terminal.screen().find("quick"), std::string::npos) << terminal.screen();
}

TEST_F(Attach, ProgramKnowsWhichTerminalItIs) {
  Terminal terminal(run_pty({"/bin/sh", "-c", "echo term=$TERM"}), {"TERM=vt220"});
  EXPECT_EQ(terminal.wait(), 0);
  EXPECT_NE(terminal.screen().find("term=vt220"), std::string::npos) << terminal.screen();
}

TEST_F(Attach, WithoutATerminalThereIsNoPty) {
  EXPECT_EQ(daemon.cli({"run", "--gpus", "0", "--pty", "--", "/bin/sh"}).exit_code, 2);
}

TEST_F(Attach, WaitingJobSaysWhyAndControlCCancelsIt) {
  const Finished blocker = daemon.cli({"submit", "--gpus", "8", "--", "/bin/sleep", "1000"});
  const std::string first = blocker.out.substr(0, blocker.out.find('\n'));
  ASSERT_TRUE(is_in_state(first, "RUNNING"));
  Terminal terminal(words({"run", "--gpus", "1", "--pty", "--", "/bin/sh"}));
  ASSERT_TRUE(terminal.shows("job 2 waits: ")) << terminal.screen();
  terminal.type("\x03");
  EXPECT_EQ(terminal.wait(), 250);
  EXPECT_EQ(daemon.job("2")["state"], "CANCELLED");
}

TEST_F(Attach, JobThatHadToWaitIsAttachedToWhenItStarts) {
  const Finished blocker = daemon.cli({"submit", "--gpus", "8", "--", "/bin/sleep", "1000"});
  const std::string first = blocker.out.substr(0, blocker.out.find('\n'));
  ASSERT_TRUE(is_in_state(first, "RUNNING"));
  Terminal terminal(words({"run", "--gpus", "1", "--pty", "--", "/bin/cat"}));
  ASSERT_TRUE(terminal.shows("job 2 waits: ")) << terminal.screen();
  EXPECT_EQ(daemon.cli({"jobs", "kill", first}).exit_code, 0);
  ASSERT_TRUE(is_in_state("2", "RUNNING"));
  terminal.type("typed\n");
  ASSERT_TRUE(terminal.shows("typed\r\ntyped\r\n")) << terminal.screen();
  terminal.type("\x04");
  EXPECT_EQ(terminal.wait(), 0);
}

TEST_F(Attach, TerminationOfRunCancelsTheJob) {
  Terminal terminal(run_pty({"/bin/sh", "-c", "echo ready; sleep 1000"}));
  ASSERT_TRUE(terminal.shows("ready"));
  terminal.signal(SIGTERM);
  EXPECT_EQ(terminal.wait(), 250);
  EXPECT_TRUE(terminal.is_as_a_shell_has_it());
  EXPECT_TRUE(is_in_state("1", "CANCELLED"));
}

// ---- leaving and coming back

TEST_F(Attach, LeftJobGoesOnAndShowsWhatItPrintedToWhoeverComesBack) {
  Terminal before(run_pty({"/bin/sh", "-c", "echo earlier; read word; echo got-$word; exit 3"}));
  const std::string id = id_of(before);
  ASSERT_TRUE(before.shows("earlier"));
  before.type(kDetach);
  EXPECT_EQ(before.wait(), 0);
  EXPECT_NE(before.screen().find("jobs attach " + id), std::string::npos) << before.screen();
  EXPECT_TRUE(before.is_as_a_shell_has_it());
  EXPECT_EQ(daemon.job(id)["state"], "RUNNING");

  Terminal after(attach(id));
  ASSERT_TRUE(after.shows("earlier")) << after.screen();
  after.type("word\n");
  ASSERT_TRUE(after.shows("got-word")) << after.screen();
  EXPECT_EQ(after.wait(), 3);
  EXPECT_TRUE(after.is_as_a_shell_has_it());
}

TEST_F(Attach, WhoeverAttachesTakesThePlace) {
  Terminal first(run_pty({"/bin/sh", "-c", "echo ready; read word; echo got-$word"}));
  const std::string id = id_of(first);
  ASSERT_TRUE(first.shows("ready"));
  Terminal second(attach(id));
  EXPECT_EQ(first.wait(), 250);
  EXPECT_NE(first.screen().find("another client has attached"), std::string::npos)
      << first.screen();
  ASSERT_TRUE(second.shows("ready"));
  second.type("word\n");
  ASSERT_TRUE(second.shows("got-word")) << second.screen();
  EXPECT_EQ(second.wait(), 0);
}

TEST_F(Attach, DeathOfDaemonAndLauncherLosesTheConnectionAndNotTheJob) {
  Terminal before(run_pty({"/bin/sh", "-c", "echo earlier; read word; echo got-$word"}));
  const std::string id = id_of(before);
  ASSERT_TRUE(before.shows("earlier"));
  for (const pid_t launcher : daemon.processes("launcher")) kill(launcher, SIGKILL);
  daemon.kill_now();
  EXPECT_EQ(before.wait(), 250);
  EXPECT_NE(before.screen().find("jobs attach " + id), std::string::npos) << before.screen();
  EXPECT_TRUE(before.is_as_a_shell_has_it());

  ASSERT_TRUE(daemon.start()) << daemon.log();
  Terminal after(attach(id));
  ASSERT_TRUE(after.shows("earlier")) << after.screen();
  after.type("word\n");
  ASSERT_TRUE(after.shows("got-word")) << after.screen();
  EXPECT_EQ(after.wait(), 0);
}

TEST_F(Attach, ClientThatIsStoppedDoesNotStopTheJob) {
  Terminal terminal(run_pty({"/bin/sh", "-c", "echo ready; read go; seq 1 2000000; exec cat"}));
  ASSERT_TRUE(terminal.shows("ready"));
  terminal.type("go\n");
  ASSERT_TRUE(terminal.shows("100\r\n"));
  terminal.signal(SIGSTOP);
  EXPECT_TRUE(
      eventually([&] { return daemon.cli({"jobs", "logs", "1"}).out.ends_with("2000000\r\n"); },
                 std::chrono::seconds(120)));
  terminal.signal(SIGCONT);
  EXPECT_EQ(terminal.wait(), 250);
  EXPECT_NE(terminal.screen().find("was not read"), std::string::npos)
      << terminal.screen().substr(terminal.screen().size() - 200);
  EXPECT_EQ(daemon.job("1")["state"], "RUNNING");
  EXPECT_EQ(daemon.cli({"jobs", "kill", "1"}).exit_code, 0);
}

TEST_F(Attach, ThereIsNothingToAttachToWhereAJobTakesNoInputOrHasEnded) {
  daemon.cli({"submit", "--gpus", "0", "--", "/bin/sleep", "1000"});
  ASSERT_TRUE(is_in_state("1", "RUNNING"));
  const Finished deaf = daemon.cli({"jobs", "attach", "1"});
  EXPECT_EQ(deaf.exit_code, 251);
  EXPECT_NE(deaf.err.find("jobs logs -f 1"), std::string::npos) << deaf.err;
  EXPECT_EQ(daemon.cli({"run", "--gpus", "0", "-i", "--", "/bin/cat"}).exit_code, 0);
  const Finished ended = daemon.cli({"jobs", "attach", "2"});
  EXPECT_EQ(ended.exit_code, 251);
  EXPECT_NE(ended.err.find("COMPLETED"), std::string::npos) << ended.err;
  EXPECT_EQ(daemon.cli({"jobs", "attach", "99"}).exit_code, 251);
  EXPECT_EQ(daemon.cli({"jobs", "kill", "1"}).exit_code, 0);
}

TEST_F(Attach, JobOfAnotherUserCannotBeAttachedTo) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be two users";
  const auto test = as_account({kBob}, {"/usr/bin/test", "-x", program("gpu-platform")});
  if (run_command(test).exit_code != 0) GTEST_SKIP() << "closed to other users";
  Terminal mine(run_pty({"/bin/sh", "-c", "echo secret; read word"}));
  ASSERT_TRUE(mine.shows("secret"));
  std::filesystem::permissions(daemon.directory(), std::filesystem::perms::others_exec,
                               std::filesystem::perm_options::add);
  const Finished refused = run_command(as_account({kBob}, attach("1")));
  EXPECT_EQ(refused.exit_code, 251);
  EXPECT_EQ(refused.out.find("secret"), std::string::npos);
  mine.type("word\n");
  EXPECT_EQ(mine.wait(), 0);
}

// ---- run --stdin

TEST_F(Attach, InputAndOutputAreWhole) {
  std::string input;
  for (int i = 0; input.size() < (10 << 20); ++i) input += std::to_string(i) + "\n";
  const Finished finished =
      daemon.cli({"run", "--gpus", "0", "--stdin", "--", "/bin/cat"}, {}, input);
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_TRUE(finished.out == input) << finished.out.size() << " of " << input.size();
  const std::string path = daemon.directory() + "/input";
  FILE* const file = fopen(path.c_str(), "w");
  ASSERT_NE(file, nullptr);
  fwrite(input.data(), 1, input.size(), file);
  fclose(file);
  const Finished expected = run_command({"sha256sum"}, {}, input);
  const Finished sum = daemon.cli({"run", "--gpus", "0", "-i", "--", "sha256sum"}, {}, input);
  EXPECT_EQ(sum.out, expected.out) << sum.err;
}

TEST_F(Attach, InputOutlastsTheDaemonAndItsLauncher) {
  const std::string more = daemon.directory() + "/more";
  const std::string client = program("gpu-platform") + " --server unix:" + daemon.socket();
  Finished finished;
  std::thread script([&] {
    finished = run_command({"/bin/sh", "-c",
                            "(seq 1 100000; while [ ! -e " + more +
                                " ]; do sleep 0.2; done; "
                                "seq 100001 200000) | " +
                                client + " run --gpus 0 -i -- /bin/cat"});
  });
  EXPECT_TRUE(eventually(
      [&] { return daemon.cli({"jobs", "logs", "1"}).out.find("\n1000\n") != std::string::npos; }));
  for (const pid_t launcher : daemon.processes("launcher")) kill(launcher, SIGKILL);
  daemon.kill_now();
  EXPECT_TRUE(daemon.start()) << daemon.log();
  fclose(fopen(more.c_str(), "w"));
  script.join();
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_TRUE(finished.out == run_command({"seq", "1", "200000"}).out) << finished.out.size();
}

TEST_F(Attach, ProgramThatLeavesItsInputEndsAllTheSame) {
  const Finished finished = daemon.cli(
      {"run", "--gpus", "0", "-i", "--", "/bin/sh", "-c", "read word; echo $word; exit 6"}, {},
      "first\n" + std::string(4 << 20, 'x'));
  EXPECT_EQ(finished.exit_code, 6) << finished.err;
  EXPECT_EQ(finished.out, "first\n");
}

TEST_F(Attach, WithoutStdinInputIsEmpty) {
  const Finished finished =
      daemon.cli({"run", "--gpus", "0", "--", "/bin/cat"}, {}, "not for the job\n");
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_EQ(finished.out, "");
}

TEST_F(Attach, InputGoesToAJobWithAnOutputFileToo) {
  const std::string path = daemon.directory() + "/sum";
  const Finished finished = daemon.cli(
      {"run", "--gpus", "0", "-i", "--output", path, "--", "/bin/cat"}, {}, "into the file\n");
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(read_file(path), "into the file\n");
}

// ---- idleness

TEST_F(Attach, IdleJobIsWarnedAndEndedWithItsReason) {
  Terminal terminal(run_pty({"/bin/sh", "-c", "echo ready; read word"}, {"--idle-timeout", "2s"}));
  ASSERT_TRUE(terminal.shows("the job is ended in 1 s")) << terminal.screen();
  EXPECT_EQ(terminal.wait(), 250);
  EXPECT_NE(terminal.screen().find("IDLE_TIMEOUT"), std::string::npos) << terminal.screen();
  const auto job = daemon.job("1");
  EXPECT_EQ(job["state"], "TIMED_OUT");
  EXPECT_EQ(job["reason"], "IDLE_TIMEOUT");
  EXPECT_EQ(job["spec"]["idle_timeout_seconds"], 2);
}

TEST_F(Attach, SitesIdleTimeoutIsForTerminalsThatNameNone) {
  ASSERT_EQ(daemon.terminate(), 0);
  DaemonOptions options;
  options.config = "execution:\n  idle_timeout: 1h\n";
  Daemon other(options);
  ASSERT_TRUE(other.start()) << other.log();
  const auto command = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {program("gpu-platform"), "--server",
                                         "unix:" + other.socket(), "run", "--gpus", "0"});
    arguments.insert(arguments.end(), {"--", "/bin/true"});
    return arguments;
  };
  for (const std::vector<std::string>& how :
       {std::vector<std::string>{"--pty"}, {"--pty", "--idle-timeout", "0"}, {"-i"}}) {
    Terminal terminal(command(how));
    EXPECT_EQ(terminal.wait(), 0) << terminal.screen() << other.log();
  }
  EXPECT_EQ(other.job("1")["spec"]["idle_timeout_seconds"], 3600);
  EXPECT_EQ(other.job("2")["spec"]["idle_timeout_seconds"], 0);
  EXPECT_TRUE(other.job("3")["spec"]["idle_timeout_seconds"].is_null());
}

TEST_F(Attach, WhatExcludesEachOtherIsRefusedWithTheRule) {
  const Finished idle =
      daemon.cli({"submit", "--gpus", "0", "--idle-timeout", "5m", "--", "/bin/true"});
  EXPECT_EQ(idle.exit_code, 2);
  EXPECT_NE(idle.err.find("--idle-timeout: needs"), std::string::npos) << idle.err;
  Terminal terminal(run_pty({"/bin/true"}, {"--output", "/tmp/never"}));
  EXPECT_EQ(terminal.wait(), 2);
  EXPECT_NE(terminal.screen().find("leave out these files"), std::string::npos)
      << terminal.screen();
  const Finished again =
      daemon.cli({"run", "--gpus", "0", "-i", "--retries", "2", "--", "/bin/true"});
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_NE(again.err.find("retries"), std::string::npos) << again.err;
}

}  // namespace
}  // namespace gpu_platform::e2e
