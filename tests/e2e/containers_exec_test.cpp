// What stands beside the main process of a job with an image: commands, terminals, input, ports,
// signals and programs around it; through the whole platform and a real container engine.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

#include "containers_fixture.h"
#include "harness.h"
#include "terminal.h"

namespace gpu_platform::e2e {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ContainersExec : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::string why = engine_.start(); !why.empty()) GTEST_SKIP() << why;
    chmod(site_.path().c_str(), 0755);
    std::filesystem::create_directory(file("shared"));
    chmod(file("shared").c_str(), 0777);
    std::ofstream(file("rules")) << "socket " << engine_.socket()
                                 << "\nulimit nofile 1024\nulimit nproc 1024\n"
                                 << "image localhost/*\nmount " << file("shared") << "\n";
    chmod(file("rules").c_str(), 0644);
    start_daemon({});
  }

  void start_daemon(const std::string& keys) {
    daemon_.reset();
    daemon_ = std::make_unique<Daemon>(
        DaemonOptions{.config = "execution:\n  containers: " + file("rules") + "\n" + keys});
    ASSERT_TRUE(daemon_->start()) << daemon_->log();
  }
  // A shell script with these lines; its path.
  std::string script(const std::string& name, const std::string& lines) const {
    std::ofstream(file(name)) << "#!/bin/sh\n" << lines << "\n";
    chmod(file(name).c_str(), 0755);
    return file(name);
  }
  bool says(const std::string& id, const std::string& text) {
    const bool does = eventually([&] { return output(id).find(text) != std::string::npos; });
    if (!does) ADD_FAILURE() << output(id) << daemon_->job(id).dump(2);
    return does;
  }

  std::string file(const std::string& name) const { return site_.path() + "/" + name; }
  std::vector<std::string> in_image(const std::string& verb, std::vector<std::string> options,
                                    const std::string& script) const {
    std::vector<std::string> words = {verb,     "--gpus",  "0",
                                      "--user", "backup",  "--image",
                                      kImage,   "--mount", file("shared") + ":/shared"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", "sh", "-c", script});
    return words;
  }
  // A job whose container runs, by id.
  std::string start(const std::vector<std::string>& options, const std::string& script) {
    const Finished submitted = daemon_->cli(in_image("submit", options, "echo ready; " + script));
    EXPECT_EQ(submitted.exit_code, 0) << submitted.err;
    const std::string id = submitted.out.substr(0, submitted.out.find('\n'));
    EXPECT_TRUE(eventually([&] { return output(id).find("ready") != std::string::npos; }))
        << output(id) << daemon_->job(id).dump(2);
    return id;
  }
  std::string sleeper() { return start({}, "exec sleep 1000"); }
  std::string output(const std::string& id) { return daemon_->cli({"jobs", "logs", id}).out; }
  Finished exec(const std::string& id, const std::vector<std::string>& command,
                const std::string& input = {}) {
    std::vector<std::string> words = {"jobs", "exec", id, "--"};
    words.insert(words.end(), command.begin(), command.end());
    return daemon_->cli(words, {}, input);
  }
  std::vector<std::string> client(std::vector<std::string> words) const {
    const std::string server = "unix:" + daemon_->socket();
    words.insert(words.begin(), {program("gpu-platform"), "--server", server});
    return words;
  }
  bool has_relays(std::size_t count) const {
    return eventually([&] { return daemon_->relays().size() == count; });
  }
  nlohmann::json ended(const std::string& id) {
    daemon_->cli({"jobs", "wait", id});
    return daemon_->job(id);
  }
  bool nothing_is_left() {
    return eventually([&] {
      return engine_.containers().empty() && daemon_->processes("gp-supervisor").empty();
    });
  }

  Engine engine_;
  TemporaryDirectory site_;
  std::unique_ptr<Daemon> daemon_;
};

// ---- commands beside the job

TEST_F(ContainersExec, ACommandRunsInTheJobsContainerAsItsUserAndGivesItsExitCode) {
  const std::string id = sleeper();
  const Finished done = exec(id, {"sh", "-c",
                                  "cat /etc/motd; id -u; grep -e NoNewPrivs -e CapEff -e CapBnd "
                                  "-e Seccomp: /proc/self/status; cat /proc/self/cgroup; echo "
                                  "$GPU_PLATFORM_JOB_ID; echo aside >&2; exit 7"});
  EXPECT_EQ(done.exit_code, 7) << done.err;
  EXPECT_THAT(done.out, AllOf(HasSubstr("from the image\n34\n"), HasSubstr("NoNewPrivs:\t1"),
                              HasSubstr("CapEff:\t0000000000000000"), HasSubstr("Seccomp:\t2")));
  EXPECT_THAT(done.out, AllOf(HasSubstr("/" + id + "-1/"), HasSubstr("\n" + id + "\n")));
  EXPECT_EQ(done.err, "aside\n");
  EXPECT_EQ(exec(id, {"sh", "-c", "kill -9 $$"}).exit_code, 137);
  EXPECT_EQ(exec(id, {"no-such-program"}).exit_code, 127);
  EXPECT_EQ(exec(id, {"/etc"}).exit_code, 126);
  EXPECT_TRUE(has_relays(0));
  EXPECT_EQ(daemon_->job(id)["state"], "RUNNING");
}

TEST_F(ContainersExec, LargeInputAndOutputPassWhole) {
  const std::string id = sleeper();
  std::string input;
  for (int i = 0; i < 200'000; ++i) input += std::to_string(i) + "\n";
  const Finished done = exec(id, {"cat"}, input);
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_TRUE(done.out == input) << done.out.size() << " of " << input.size();
  EXPECT_EQ(exec(id, {"sh", "-c", "exit 4"}, std::string(4 << 20, 'x')).exit_code, 4);
}

TEST_F(ContainersExec, ACommandOnATerminalHasItsKeysAndItsSize) {
  const std::string id = sleeper();
  Terminal terminal(client({"jobs", "exec", "-t", id, "--", "sh"}));
  ASSERT_TRUE(terminal.shows("$ ")) << terminal.screen();
  terminal.type("until [ \"$(stty size)\" = '24 80' ]; do :; done; echo size''d\r");
  EXPECT_TRUE(terminal.shows("sized")) << terminal.screen();
  terminal.resize(100, 30);
  terminal.type("until [ \"$(stty size)\" = '30 100' ]; do :; done; echo again''sized\r");
  EXPECT_TRUE(terminal.shows("againsized")) << terminal.screen();
  terminal.type("sh -c 'echo as\"\"leep; exec sleep 1000'\r");
  EXPECT_TRUE(terminal.shows("asleep")) << terminal.screen();
  terminal.type("\x03");
  terminal.type("echo inter''rupted $?\r");
  EXPECT_TRUE(terminal.shows("interrupted 130")) << terminal.screen();
  // The shell must be back at its prompt: what ends a line's input is lost when it takes the
  // terminal.
  terminal.type("PS1=th''ere; (exit 5)\r");
  EXPECT_TRUE(terminal.shows("there")) << terminal.screen();
  terminal.type("\x04");
  EXPECT_EQ(terminal.wait(), 5);
  EXPECT_TRUE(has_relays(0));
}

TEST_F(ContainersExec, AClientThatGoesEndsItsCommand) {
  const std::string id = sleeper();
  for (const char* const script : {"echo $$ > /shared/pid; exec sleep 1000",
                                   "trap '' HUP; echo $$ > /shared/pid; while :; do sleep 1; done",
                                   "echo $$ > /shared/pid; while :; do echo flood; done"}) {
    std::filesystem::remove(file("shared/pid"));
    {
      Terminal terminal(client({"jobs", "exec", "-t", id, "--", "sh", "-c", script}));
      EXPECT_TRUE(eventually([&] { return !read_file(file("shared/pid")).empty(); })) << script;
    }
    EXPECT_TRUE(has_relays(0)) << script;
    const Finished left = exec(id, {"sh", "-c", "kill -0 $(cat /shared/pid)"});
    EXPECT_NE(left.exit_code, 0) << script;
  }
  EXPECT_EQ(daemon_->job(id)["state"], "RUNNING");
}

TEST_F(ContainersExec, ACommandEndsWithItsJob) {
  const std::string id = sleeper();
  Terminal terminal(client({"jobs", "exec", "-t", id, "--", "sh"}));
  ASSERT_TRUE(terminal.shows("$ "));
  EXPECT_EQ(daemon_->cli({"jobs", "kill", id}).exit_code, 0);
  EXPECT_NE(terminal.wait(), 0);
  EXPECT_THAT(terminal.screen(), HasSubstr("job " + id + " has ended"));
  EXPECT_TRUE(nothing_is_left());
  EXPECT_THAT(exec(id, {"true"}).err, HasSubstr("only a running job"));
}

TEST_F(ContainersExec, ACommandMayCloseItsOutputAndGoOn) {
  const std::string id = sleeper();
  const Finished done = exec(id, {"sh", "-c", "exec >&- 2>&-; sleep 2; exit 6"});
  EXPECT_EQ(done.exit_code, 6) << done.err;
}

// Nothing that runs beside its process is entered because of a label alone.
TEST_F(ContainersExec, AContainerWithOurLabelThatIsNotTheJobsIsNotEntered) {
  const std::string id = start({}, "until test -e /shared/go; do sleep 0.1; done");
  const Finished foreign = run_command(
      engine_.tool({"run", "--detach", "--network", "none", "--ulimit", "nofile=1024:1024",
                    "--ulimit", "nproc=1024:1024", "--label", "gpu-platform.attempt=" + id + "-1",
                    "--env", "FOREIGN=yes", kImage, "sleep", "1000"}));
  ASSERT_EQ(foreign.exit_code, 0) << foreign.err;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(exec(id, {"sh", "-c", "echo foreign=$FOREIGN"}).out, "foreign=\n");
  }
  std::ofstream(file("shared/go")) << "";
  EXPECT_EQ(ended(id)["state"], "COMPLETED");
}

TEST_F(ContainersExec, AnEngineThatIsGoneIsToldAtOnce) {
  const std::string id = sleeper();
  engine_.stop();
  const Finished done = exec(id, {"true"});
  EXPECT_EQ(done.exit_code, 125) << done.err;
  EXPECT_THAT(done.err, HasSubstr("the container engine"));
  ASSERT_EQ(engine_.serve(), "");
  EXPECT_EQ(exec(id, {"true"}).exit_code, 0);
  EXPECT_EQ(daemon_->job(id)["state"], "RUNNING");
}

// ---- the job's own terminal and input

TEST_F(ContainersExec, AJobOnATerminalHasItsKeysItsSizeAndItsExitCode) {
  Terminal terminal(client(in_image("run", {"--pty"}, "exec sh")));
  ASSERT_TRUE(terminal.shows("$ ")) << terminal.screen();
  terminal.type("until [ \"$(stty size)\" = '24 80' ]; do :; done; echo size''d\r");
  EXPECT_TRUE(terminal.shows("sized")) << terminal.screen();
  terminal.resize(100, 30);
  terminal.type("until [ \"$(stty size)\" = '30 100' ]; do :; done; echo again''sized\r");
  EXPECT_TRUE(terminal.shows("againsized")) << terminal.screen();
  terminal.type("id -u; cat /etc/motd; sh -c 'echo as\"\"leep; exec sleep 1000'\r");
  EXPECT_TRUE(terminal.shows("asleep")) << terminal.screen();
  EXPECT_THAT(terminal.screen(), HasSubstr("34\r\nfrom the image\r\n"));
  terminal.type("\x03");
  terminal.type("echo inter''rupted $?\r");
  EXPECT_TRUE(terminal.shows("interrupted 130")) << terminal.screen();
  terminal.type("PS1=th''ere; (exit 5)\r");
  EXPECT_TRUE(terminal.shows("there")) << terminal.screen();
  terminal.type("\x04");
  EXPECT_EQ(terminal.wait(), 5) << terminal.screen();
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(ContainersExec, AClientDetachesFromATerminalAndAttachesAgain) {
  Terminal first(client(in_image("run", {"--pty"},
                                 "stty -echo; echo ready; while read line; do "
                                 "echo got $line; done; exit 3")));
  ASSERT_TRUE(first.shows("ready")) << first.screen();
  first.type("one\r");
  EXPECT_TRUE(first.shows("got one")) << first.screen();
  first.type("\x10\x11");
  first.wait();
  const std::string id = "1";
  EXPECT_EQ(daemon_->job(id)["state"], "RUNNING") << first.screen();
  Terminal second(client({"jobs", "attach", id}));
  EXPECT_TRUE(second.shows("got one")) << second.screen();
  second.type("two\r");
  EXPECT_TRUE(second.shows("got two")) << second.screen();
  second.type("\x04");
  EXPECT_EQ(second.wait(), 3) << second.screen();
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(ContainersExec, AJobTakesInputUntilItsEnd) {
  std::string input;
  for (int i = 0; i < 100'000; ++i) input += std::to_string(i) + "\n";
  const Finished done =
      daemon_->cli(in_image("run", {"--stdin"}, "cat; echo aside >&2; exit 4"), {}, input);
  EXPECT_EQ(done.exit_code, 4) << done.err;
  // The engine has two streams, of which either may come first.
  std::string output = done.out;
  const std::size_t aside = output.find("aside\n");
  ASSERT_NE(aside, std::string::npos) << output.size() << " of " << input.size();
  output.erase(aside, std::string("aside\n").size());
  EXPECT_TRUE(output == input) << output.size() << " of " << input.size();
  // One that reads nothing ends nevertheless.
  const Finished deaf = daemon_->cli(in_image("run", {"--stdin"}, "exec <&-; sleep 1; exit 6"), {},
                                     std::string(4 << 20, 'x'));
  EXPECT_EQ(deaf.exit_code, 6) << deaf.err;
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(ContainersExec, AFloodOnATerminalEndsWithItsJob) {
  Terminal terminal(client(in_image("run", {"--pty"}, "while :; do echo flood; done")));
  ASSERT_TRUE(terminal.shows("flood"));
  EXPECT_EQ(daemon_->cli({"jobs", "kill", "1"}).exit_code, 0);
  EXPECT_EQ(ended("1")["state"], "CANCELLED");
  EXPECT_TRUE(nothing_is_left());
}

// ---- ports

TEST_F(ContainersExec, APortIsTheContainersOwn) {
  const std::string id = start({}, "exec nc -ll -p 7777 -e cat");
  const auto forwarded = [&](int port, Terminal& forward) {
    EXPECT_TRUE(forward.shows("forwards connections")) << forward.screen();
    const std::string& screen = forward.screen();
    const std::string local = screen.substr(screen.find("127.0.0.1:") + 10);
    const std::string script = "printf 'hello %s\\n' " + std::to_string(port) +
                               " | busybox nc -w 10 127.0.0.1 " + std::to_string(std::stoi(local));
    return run_command({"/bin/sh", "-c", script}).out;
  };
  Terminal inside(client({"jobs", "port-forward", id, "0:7777"}));
  EXPECT_EQ(forwarded(7777, inside), "hello 7777\n");
  // What listens on the host is not to be reached.
  Terminal server({"/bin/sh", "-c", "echo up; exec busybox nc -ll -s 127.0.0.1 -p 7778 -e cat"});
  ASSERT_TRUE(server.shows("up"));
  Terminal outside(client({"jobs", "port-forward", id, "0:7778"}));
  EXPECT_EQ(forwarded(7778, outside), "");
  EXPECT_TRUE(outside.shows("Connection refused")) << outside.screen();
}

// ---- signals

TEST_F(ContainersExec, SignalsReachTheContainersProcessesAndNothingOfItsEngine) {
  const std::string traps =
      "for s in USR1 USR2 HUP INT QUIT; do trap \"echo got $s\" $s; done; "
      "trap 'echo bye; exit 9' TERM; echo trapped; while :; do sleep 0.1; done";
  const std::string id = start({}, traps);
  ASSERT_TRUE(says(id, "trapped"));
  for (const char* const name : {"USR1", "USR2", "HUP", "INT", "QUIT"}) {
    EXPECT_EQ(daemon_->cli({"jobs", "signal", id, "-s", name}).exit_code, 0) << name;
    EXPECT_TRUE(says(id, std::string("got ") + name));
  }
  EXPECT_EQ(exec(id, {"true"}).exit_code, 0);
  EXPECT_EQ(daemon_->cli({"jobs", "signal", id, "-s", "TERM"}).exit_code, 0);
  EXPECT_EQ(ended(id)["exit_code"], 9) << output(id);
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(ContainersExec, TheWarningBeforeTheTimeLimitReachesTheContainer) {
  const std::string id = start({"--time", "1h", "--signal", "USR2@3595"},
                               "trap 'echo saved; exit 0' USR2; while :; do sleep 0.1; done");
  EXPECT_EQ(ended(id)["state"], "COMPLETED") << output(id);
  EXPECT_THAT(output(id), HasSubstr("saved"));
}

// ---- programs around the job

TEST_F(ContainersExec, TheJobsPrologAndEpilogRunOnTheNodeAsItsUser) {
  const std::string log = file("shared/log");
  const std::string before =
      script("before", "echo before $(id -u) $GPU_PLATFORM_JOB_ID >> " + log);
  const std::string after =
      script("after", "echo after $(id -u) $GPU_PLATFORM_EXIT_CODE >> " + log + "; echo aside");
  const Finished done = daemon_->cli(in_image("run", {"--prolog", before, "--epilog", after},
                                              "echo inside >> /shared/log; cat /etc/motd; exit 3"));
  EXPECT_EQ(done.exit_code, 3) << done.err;
  EXPECT_EQ(read_file(log), "before 34 1\ninside\nafter 34 3\n") << daemon_->job("1").dump(2);
  EXPECT_THAT(done.out, AllOf(HasSubstr("from the image"), HasSubstr("aside")));
  const Finished failed = daemon_->cli(
      in_image("run", {"--prolog", script("no", "exit 8")}, "echo never >> /shared/log"));
  EXPECT_NE(failed.exit_code, 0);
  EXPECT_THAT(read_file(log), Not(HasSubstr("never")));
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(ContainersExec, TheSitesProgramsRunAroundAContainer) {
  const std::string log = file("log");
  start_daemon("  prolog: " + script("prolog", "echo prolog $(id -u) >> " + log) +
               "\n  epilog: " + script("epilog", "echo epilog $(id -u) >> " + log) + "\n");
  const Finished done = daemon_->cli(in_image("run", {}, "exit 2"));
  EXPECT_EQ(done.exit_code, 2) << done.err;
  EXPECT_TRUE(eventually([&] { return read_file(log) == "prolog 0\nepilog 0\n"; }))
      << read_file(log) << daemon_->job("1").dump(2) << daemon_->log();
  EXPECT_TRUE(nothing_is_left());
}

}  // namespace
}  // namespace gpu_platform::e2e
