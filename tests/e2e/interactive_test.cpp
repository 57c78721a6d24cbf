#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <thread>

#include "harness.h"
#include "terminal.h"

// Work inside running jobs, through the command line, on a real terminal where there is one.

namespace gpu_platform::e2e {
namespace {

class Interactive : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(daemon.start()) << daemon.log(); }

  // A running job, by id.
  std::string start(std::vector<std::string> options, std::vector<std::string> command) {
    options.insert(options.begin(), "submit");
    options.emplace_back("--");
    options.insert(options.end(), command.begin(), command.end());
    const Finished submitted = daemon.cli(options);
    EXPECT_EQ(submitted.exit_code, 0) << submitted.err;
    const std::string id = submitted.out.substr(0, submitted.out.find('\n'));
    EXPECT_TRUE(eventually([&] { return daemon.job(id)["state"] == "RUNNING"; })) << daemon.log();
    return id;
  }
  std::string sleeper() { return start({"--gpus", "1"}, {"/bin/sleep", "1000"}); }

  Finished exec(const std::string& id, const std::vector<std::string>& command,
                const std::string& input = {}) {
    std::vector<std::string> words = {"jobs", "exec", id, "--"};
    words.insert(words.end(), command.begin(), command.end());
    return daemon.cli(words, {}, input);
  }
  std::vector<std::string> terminal_exec(const std::string& id, const std::string& script) const {
    return {program("gpu-platform"),
            "--server",
            "unix:" + daemon.socket(),
            "jobs",
            "exec",
            "-t",
            id,
            "--",
            "/bin/sh",
            "-c",
            script};
  }
  bool has_relays(std::size_t count) const {
    return eventually([&] { return daemon.relays().size() == count; });
  }

  Daemon daemon;
};

// ---- exec

TEST_F(Interactive, ExecKeepsStreamsApartAndGivesTheCommandsExitCode) {
  const std::string id = sleeper();
  const Finished finished = exec(id, {"/bin/sh", "-c", "echo out; echo err >&2; exit 7"});
  EXPECT_EQ(finished.exit_code, 7);
  EXPECT_EQ(finished.out, "out\n");
  EXPECT_EQ(finished.err, "err\n");
  EXPECT_EQ(exec(id, {"/bin/sh", "-c", "kill -9 $$"}).exit_code, 137);
  EXPECT_TRUE(has_relays(0));
}

TEST_F(Interactive, ExecPassesLargeInputAndOutputWhole) {
  const std::string id = sleeper();
  std::string input;
  for (int i = 0; i < 400'000; ++i) input += std::to_string(i) + "\n";
  const Finished finished = exec(id, {"/bin/cat"}, input);
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_TRUE(finished.out == input) << finished.out.size() << " of " << input.size();
}

// The user, the job and the kind of channel, in the daemon's words and in the launcher's; arguments
// are in neither.
TEST_F(Interactive, ChannelsAreInTheLogWithoutTheirArguments) {
  const std::string id = sleeper();
  EXPECT_EQ(exec(id, {"/bin/echo", "s3cret"}).out, "s3cret\n");
  const std::string user = run_command({"/usr/bin/id", "-un"}).out;
  const std::string of_daemon = "channel=1 job=" + id +
                                " attempt=1 by=" + user.substr(0, user.find('\n')) +
                                " kind=exec command=/bin/echo ";
  const std::string of_launcher =
      " attempt=" + id + "-1 uid=" + std::to_string(getuid()) + " exec=/bin/echo ";
  for (const std::string& line : {of_daemon, of_launcher}) {
    for (const char* what : {"begins", "ends"}) {
      EXPECT_TRUE(eventually([&] { return daemon.log().find(line + what) != std::string::npos; }))
          << line << what << "\n"
          << daemon.log();
    }
  }
  EXPECT_EQ(daemon.log().find("s3cret"), std::string::npos);
}

// As a driver would show it: the job's own process, and the one beside it.
TEST_F(Interactive, ExecIsSeenOnTheJobsGpuAndIsNoUnmanagedProcess) {
  const std::string id = sleeper();
  const std::string uuid = daemon.job(id)["gpus"][0]["uuid"];
  const std::string script = "touch \"$0\"; until [ -e \"$0.end\" ]; do sleep 0.2; done";
  const std::string flag = daemon.directory() + "/flag";
  std::thread beside([&] { exec(id, {"/bin/sh", "-c", script, flag}); });
  const bool is_there = eventually([&] { return std::filesystem::exists(flag); });
  const auto processes = [&] { return daemon.json({"health", "--gpu-id", uuid})["processes"]; };
  const bool both = eventually([&] {
    const auto shown = processes();
    return shown.size() == 2 && shown[0]["job"] == id && shown[1]["job"] == id;
  });
  const std::string shown = processes().dump();
  std::ofstream(flag + ".end").flush();
  beside.join();
  EXPECT_TRUE(is_there && both) << shown;
  EXPECT_TRUE(eventually([&] { return processes().size() == 1; }));
}

TEST_F(Interactive, ExecEndsThoughItsInputIsNotRead) {
  const std::string id = sleeper();
  const std::string input(4 << 20, 'x');
  const Finished finished = exec(id, {"/bin/sh", "-c", "exit 4"}, input);
  EXPECT_EQ(finished.exit_code, 4) << finished.err;
}

TEST_F(Interactive, ExecHasTheJobsEnvironmentDirectoryAndUmask) {
  const std::string id =
      start({"--gpus", "2", "--env", "ADDED=yes", "--workdir", "/usr"}, {"/bin/sleep", "1000"});
  const auto job = daemon.job(id);
  const Finished finished =
      exec(id, {"/bin/sh", "-c", "echo $CUDA_VISIBLE_DEVICES $ADDED $GPU_PLATFORM_JOB_ID; pwd"});
  EXPECT_EQ(finished.out, job["gpus"][0]["index"].dump() + "," + job["gpus"][1]["index"].dump() +
                              " yes " + id + "\n/usr\n");
}

TEST_F(Interactive, ExecIsBornIntoTheJobsCgroup) {
  const std::string id =
      start({"--gpus", "0"}, {"/bin/sh", "-c", "cat /proc/self/cgroup; sleep 1000"});
  ASSERT_TRUE(eventually([&] { return !daemon.cli({"jobs", "logs", id}).out.empty(); }));
  EXPECT_EQ(exec(id, {"/bin/cat", "/proc/self/cgroup"}).out, daemon.cli({"jobs", "logs", id}).out);
}

TEST_F(Interactive, ExecOfACommandThatIsMissingSaysSoAsAShellDoes) {
  const std::string id = sleeper();
  const Finished missing = exec(id, {"no-such-program"});
  EXPECT_EQ(missing.exit_code, 127);
  EXPECT_NE(missing.err.find("no-such-program"), std::string::npos) << missing.err;
  EXPECT_EQ(exec(id, {"/etc/passwd"}).exit_code, 126);
}

TEST_F(Interactive, ExecIsRefusedWhereThereIsNothingToEnter) {
  const Finished waiting = daemon.cli({"submit", "--gpus", "0", "--", "/bin/true"});
  const std::string id = waiting.out.substr(0, waiting.out.find('\n'));
  ASSERT_TRUE(eventually([&] { return daemon.job(id)["state"] == "COMPLETED"; }));
  const Finished ended = exec(id, {"/bin/true"});
  EXPECT_EQ(ended.exit_code, 251);
  EXPECT_NE(ended.err.find("COMPLETED"), std::string::npos) << ended.err;
  EXPECT_EQ(exec("999", {"/bin/true"}).exit_code, 251);
  EXPECT_EQ(daemon.cli({"jobs", "exec", id}).exit_code, 2);
  EXPECT_EQ(daemon.cli({"jobs", "exec", "-t", id, "--", "/bin/sh"}).exit_code, 2);
}

TEST_F(Interactive, ExecEndsWithItsJobAndSaysSo) {
  const std::string id = sleeper();
  Terminal terminal(terminal_exec(id, "echo ready; sleep 1000"));
  ASSERT_TRUE(terminal.shows("ready"));
  EXPECT_EQ(daemon.cli({"jobs", "kill", id}).exit_code, 0);
  EXPECT_EQ(terminal.wait(), 137);
  EXPECT_NE(terminal.screen().find("job " + id + " has ended"), std::string::npos)
      << terminal.screen();
  EXPECT_TRUE(terminal.is_as_a_shell_has_it());
}

TEST_F(Interactive, CommandIsHungUpWhenItsClientIsKilled) {
  const std::string id = sleeper();
  const std::string mark = daemon.directory() + "/hung-up";
  {
    Terminal terminal(terminal_exec(id, "trap 'echo x > " + mark +
                                            "; exit' HUP; echo ready; "
                                            "while :; do sleep 0.1; done"));
    ASSERT_TRUE(terminal.shows("ready"));
    EXPECT_TRUE(has_relays(1));
    terminal.signal(SIGKILL);
    EXPECT_TRUE(eventually([&] { return !read_file(mark).empty(); }));
  }
  EXPECT_TRUE(has_relays(0));
  EXPECT_EQ(daemon.job(id)["state"], "RUNNING");
}

// ---- with a terminal

TEST_F(Interactive, TerminalHasItsSizeAndFollowsTheWindow) {
  const std::string id = sleeper();
  Terminal terminal(terminal_exec(
      id, "trap 'stty size' WINCH; tty -s && stty size; while :; do sleep 0.1; done"));
  ASSERT_TRUE(terminal.shows("24 80")) << terminal.screen();
  terminal.resize(132, 50);
  EXPECT_TRUE(terminal.shows("50 132")) << terminal.screen();
}

TEST_F(Interactive, ControlCGoesToTheJobAndNotToTheClient) {
  const std::string id = sleeper();
  Terminal terminal(terminal_exec(
      id, "trap 'echo interrupted; exit 9' INT; echo ready; while :; do sleep 0.1; done"));
  ASSERT_TRUE(terminal.shows("ready"));
  EXPECT_FALSE(terminal.is_as_a_shell_has_it()) << "the client holds it raw meanwhile";
  terminal.type("\x03");
  EXPECT_EQ(terminal.wait(), 9);
  EXPECT_NE(terminal.screen().find("interrupted"), std::string::npos);
  EXPECT_TRUE(terminal.is_as_a_shell_has_it());
}

TEST_F(Interactive, ShellOnATerminalTakesWhatIsTyped) {
  const std::string id = sleeper();
  Terminal terminal({program("gpu-platform"), "--server", "unix:" + daemon.socket(), "jobs", "exec",
                     "--pty", id, "--", "/bin/sh"});
  terminal.type("echo $((40 + 2))-answer\n");
  ASSERT_TRUE(terminal.shows("42-answer")) << terminal.screen();
  terminal.type("exit 5\n");
  EXPECT_EQ(terminal.wait(), 5);
}

TEST_F(Interactive, TerminalIsRestoredWhenTheClientIsToldToEndAndWhenTheDaemonDies) {
  const std::string id = sleeper();
  {
    Terminal terminal(terminal_exec(id, "echo ready; sleep 1000"));
    ASSERT_TRUE(terminal.shows("ready"));
    terminal.signal(SIGTERM);
    EXPECT_EQ(terminal.wait(), 143);
    EXPECT_TRUE(terminal.is_as_a_shell_has_it());
  }
  Terminal terminal(terminal_exec(id, "echo ready; sleep 1000"));
  ASSERT_TRUE(terminal.shows("ready"));
  daemon.kill_now();
  EXPECT_EQ(terminal.wait(), 250);
  EXPECT_NE(terminal.screen().find("the daemon has gone"), std::string::npos) << terminal.screen();
  EXPECT_TRUE(terminal.is_as_a_shell_has_it());
  ASSERT_TRUE(daemon.start()) << daemon.log();
  EXPECT_EQ(exec(id, {"/bin/true"}).exit_code, 0) << "a job that was adopted can be entered";
  EXPECT_TRUE(has_relays(0));
}

// ---- who may

TEST_F(Interactive, JobOfAnotherUserCannotBeEntered) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be two users";
  const auto test = as_account({kBob}, {"/usr/bin/test", "-x", program("gpu-platform")});
  if (run_command(test).exit_code != 0) GTEST_SKIP() << "closed to other users";
  const std::string id = sleeper();
  std::filesystem::permissions(daemon.directory(), std::filesystem::perms::others_exec,
                               std::filesystem::perm_options::add);
  const auto as_other = [&](const std::vector<std::string>& words) {
    std::vector<std::string> command = {program("gpu-platform"), "--server",
                                        "unix:" + daemon.socket()};
    command.insert(command.end(), words.begin(), words.end());
    return run_command(as_account({kBob}, command));
  };
  EXPECT_EQ(as_other({"status"}).exit_code, 0) << "the socket itself is open to all";
  const Finished entered = as_other({"jobs", "exec", id, "--", "/bin/true"});
  EXPECT_EQ(entered.exit_code, 251);
  EXPECT_NE(entered.err.find(id), std::string::npos) << entered.err;
  EXPECT_EQ(as_other({"jobs", "port-forward", id, "0:80"}).exit_code, 3);
}

// ---- ports

// A server of one connection after the other, which gives back what it gets.
class EchoServer {
 public:
  EchoServer() {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener_, 4), 0);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~EchoServer() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }
  int port() const { return port_; }

 private:
  void serve() const {
    while (true) {
      const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) return;
      std::array<char, 4096> bytes;
      for (ssize_t got = 0; (got = read(fd, bytes.data(), bytes.size())) > 0;) {
        if (send(fd, bytes.data(), static_cast<std::size_t>(got), MSG_NOSIGNAL) < 0) break;
      }
      close(fd);
    }
  }
  int listener_ = -1;
  int port_ = 0;
  std::thread thread_;
};

int connect_to(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return fd;
  close(fd);
  return -1;
}

// Sends everything, ends its side, and reads until the other side has ended too.
std::string exchange(int fd, const std::string& sent) {
  std::thread writer([&] {
    std::string_view rest = sent;
    while (!rest.empty()) {
      const ssize_t wrote = send(fd, rest.data(), rest.size(), MSG_NOSIGNAL);
      if (wrote <= 0) break;
      rest.remove_prefix(static_cast<std::size_t>(wrote));
    }
    shutdown(fd, SHUT_WR);
  });
  std::string received;
  std::array<char, 65536> bytes;
  for (ssize_t got = 0; (got = read(fd, bytes.data(), bytes.size())) > 0;) {
    received.append(bytes.data(), static_cast<std::size_t>(got));
  }
  writer.join();
  close(fd);
  return received;
}

TEST_F(Interactive, PortForwardCarriesConnectionsWhole) {
  const std::string id = sleeper();
  const EchoServer server;
  Terminal forward({program("gpu-platform"), "--server", "unix:" + daemon.socket(), "jobs",
                    "port-forward", id, "0:" + std::to_string(server.port())});
  ASSERT_TRUE(forward.shows("forwards connections")) << forward.screen();
  const std::string& screen = forward.screen();
  const int port = std::stoi(screen.substr(screen.find("127.0.0.1:") + 10));
  std::string sent;
  for (int i = 0; i < 300'000; ++i) sent += std::to_string(i) + "\n";
  for (const std::string& text : {sent, std::string("short")}) {
    const int fd = connect_to(port);
    ASSERT_GE(fd, 0);
    EXPECT_TRUE(exchange(fd, text) == text);
  }
  forward.type("\x03");
  EXPECT_EQ(forward.wait(), 0);
  EXPECT_LT(connect_to(port), 0) << "no process listens any more";
  EXPECT_TRUE(has_relays(0));
}

TEST_F(Interactive, PortForwardOfAnEndedJobOrAPortOfNobodySaysSo) {
  const std::string id = sleeper();
  EXPECT_EQ(daemon.cli({"jobs", "port-forward", id, "70000"}).exit_code, 2);
  EXPECT_EQ(daemon.cli({"jobs", "port-forward", id, "x:80"}).exit_code, 2);
  int closed_port = 0;
  {
    const EchoServer server;
    closed_port = server.port();
  }
  Terminal forward({program("gpu-platform"), "--server", "unix:" + daemon.socket(), "jobs",
                    "port-forward", id, "0:" + std::to_string(closed_port)});
  ASSERT_TRUE(forward.shows("forwards connections")) << forward.screen();
  const std::string& screen = forward.screen();
  const int port = std::stoi(screen.substr(screen.find("127.0.0.1:") + 10));
  EXPECT_EQ(exchange(connect_to(port), "hello"), "");
  EXPECT_TRUE(forward.shows("Connection refused")) << forward.screen();
  daemon.cli({"jobs", "kill", id});
  ASSERT_TRUE(eventually([&] { return daemon.job(id)["state"] == "CANCELLED"; }));
  EXPECT_EQ(exchange(connect_to(port), "hello"), "");
  EXPECT_EQ(forward.wait(), 4);
  EXPECT_EQ(daemon.cli({"jobs", "port-forward", id, "80"}).exit_code, 4);
}

// ---- cp

TEST_F(Interactive, CpCarriesATreeIntoAJobAndBack) {
  const std::string folder = daemon.directory() + "/copied";
  const std::string id =
      start({"--gpus", "0", "--workdir", daemon.directory()}, {"/bin/sleep", "1000"});
  std::filesystem::create_directories(folder + "/sub");
  std::string large;
  for (int i = 0; i < 300'000; ++i) large += std::to_string(i) + "\n";
  std::ofstream(folder + "/sub/large") << large;
  std::ofstream(folder + "/small") << "small";

  const Finished in = daemon.cli({"jobs", "cp", folder, id + ":there"});
  EXPECT_EQ(in.exit_code, 0) << in.err;
  EXPECT_EQ(exec(id, {"/bin/cat", "there/small"}).out, "small");
  const Finished back = daemon.cli({"jobs", "cp", id + ":there/", folder});
  EXPECT_EQ(back.exit_code, 0) << back.err;
  EXPECT_EQ(
      run_command({"/usr/bin/cmp", folder + "/sub/large", folder + "/there/sub/large"}).exit_code,
      0);
  const Finished missing = daemon.cli({"jobs", "cp", id + ":there/none", folder});
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_NE(missing.err.find("No such file"), std::string::npos) << missing.err;
  EXPECT_EQ(daemon.cli({"jobs", "cp", folder, "99:x"}).exit_code, 3);
  EXPECT_TRUE(has_relays(0));
}

// ---- notebook

TEST_F(Interactive, ANotebookIsStartedForwardedAndCancelledByControlC) {
  Terminal notebook({program("gpu-platform"), "--server", "unix:" + daemon.socket(), "notebook",
                     "--gpus", "1", "--", "/usr/bin/python3", "-m", "http.server", "--bind",
                     "127.0.0.1", "{port}"});
  ASSERT_TRUE(notebook.shows("Ctrl-C cancels the job")) << notebook.screen();
  const std::string& screen = notebook.screen();
  const int port = std::stoi(screen.substr(screen.find("http://127.0.0.1:") + 17));
  const std::string page = exchange(connect_to(port), "GET / HTTP/1.0\r\n\r\n");
  EXPECT_TRUE(page.starts_with("HTTP/1.0 200")) << page;
  EXPECT_EQ(daemon.job("1")["spec"]["kind"], "INTERACTIVE");
  notebook.type("\x03");
  EXPECT_EQ(notebook.wait(), 250) << notebook.screen();
  EXPECT_EQ(daemon.job("1")["state"], "CANCELLED");
}

TEST_F(Interactive, ANotebookWhoseProgramEndsSaysSo) {
  const Finished finished =
      daemon.cli({"notebook", "--gpus", "0", "--", "/bin/sh", "-c", "exit 3"});
  EXPECT_EQ(finished.exit_code, 3) << finished.err;
  EXPECT_EQ(finished.out, "");
}

}  // namespace
}  // namespace gpu_platform::e2e
