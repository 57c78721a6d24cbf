#include "node/launcher/delegated_scope.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node/cgroup.h"
#include "os/clock.h"
#include "os/small_file.h"

namespace gpu_platform::node {

namespace {

// The daemon that has started us waits twice as long for our first word.
constexpr int kSystemdTimeoutMs = 5000;
// Only jobs wait for the launcher of a service, and a host that is booting may be slow.
constexpr int kServiceTimeoutMs = 60'000;
// systemd forgets a scope some moments after its last process; until then the name is taken.
constexpr int kPauseMs = 100;
constexpr std::string_view kReady = "ready\n";

// Empty: this host has it in neither place.
std::string find_program(const std::string& name) {
  for (const char* folder : {"/usr/bin/", "/bin/"}) {
    if (access((folder + name).c_str(), X_OK) == 0) return folder + name;
  }
  return {};
}

// Returns whether the cgroup has processes: a supervisor of an earlier launcher, or a job.
bool is_populated(const std::string& cgroup) {
  const std::string events = os::read_small_file(AT_FDCWD, (cgroup + "/cgroup.events").c_str());
  return os::number_after(events, "populated") == 1;
}

bool has_controllers(const std::string& cgroup) {
  const std::string file = cgroup + "/cgroup.controllers";
  return os::read_small_file(AT_FDCWD, file.c_str()).find("cpu") != std::string::npos;
}

// Runs in the child: says `ready` from within the scope, and is there until its input ends.
[[noreturn]] void become_holder(const std::string& name, int input, int output) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const std::string program = find_program("systemd-run");
  const std::string holder = find_program("cat");
  const std::string unit = "--unit=" + name;
  // Jobs and supervisors are ended by nothing but the platform, and counted by it.
  const char* arguments[] = {"systemd-run",
                             "--scope",
                             "--quiet",
                             "--collect",
                             "--no-ask-password",
                             "--slice=system.slice",
                             unit.c_str(),
                             "--description=GPU platform: where jobs live",
                             "--property=Delegate=yes",
                             "--property=KillMode=process",
                             "--property=TasksMax=infinity",
                             "--",
                             holder.c_str(),
                             nullptr};
  const char* environment[] = {"PATH=/usr/bin:/bin", "LC_ALL=C", nullptr};
  if (dup2(input, 0) == 0 && dup2(output, 1) == 1 && dup2(output, 2) == 2) {
    execve(program.c_str(), const_cast<char* const*>(arguments),
           const_cast<char* const*>(environment));
  }
  _exit(127);
}

// The cgroup at the top of the tree that systemd rules; empty: it rules none, or we may not ask it.
std::string find_top() {
  struct stat about{};
  // sd_booted(3) looks at the same folder.
  if (geteuid() != 0 || lstat("/run/systemd/system", &about) != 0) return {};
  const auto mount = find_cgroup2_mount(os::read_small_file(AT_FDCWD, "/proc/self/mountinfo"));
  const auto top = find_systemd_top(os::read_small_file(AT_FDCWD, "/proc/1/cgroup"));
  return mount && top ? *mount + *top : std::string();
}

}  // namespace

void DelegatedScope::open(const std::string& name) {
  const std::string top = find_top();
  if (top.empty()) {
    why_ = "the first process is not systemd, or we are not root";
  } else {
    timeout_ms_ = kServiceTimeoutMs;
    find_or_ask(name + ".scope", top);
  }
}

void DelegatedScope::open_for_controllers(const std::string& name) {
  const std::string top = find_top();
  if (top.empty() || !has_controllers(top)) return;
  timeout_ms_ = kSystemdTimeoutMs;
  find_or_ask(name + ".scope", top);
}

void DelegatedScope::find_or_ask(const std::string& name, const std::string& top) {
  const std::string expected = top + "/system.slice/" + name;
  deadline_ms_ = os::monotonic_ms() + timeout_ms_;
  do {
    if (is_populated(expected) || ask(name, expected)) {
      path_ = expected;
      why_.clear();
      return;
    }
    poll(nullptr, 0, kPauseMs);
  } while (os::monotonic_ms() < deadline_ms_);
}

// False with why_.
bool DelegatedScope::ask(const std::string& name, const std::string& expected) {
  if (find_program("systemd-run").empty() || find_program("cat").empty()) {
    why_ = "there is no systemd-run";
    return false;
  }
  int input[2];
  int output[2];
  if (pipe2(input, O_CLOEXEC) != 0) return false;
  if (pipe2(output, O_CLOEXEC) != 0) {
    close(input[0]);
    close(input[1]);
    return false;
  }
  holder_ = fork();
  if (holder_ == 0) become_holder(name, input[0], output[1]);
  close(input[0]);
  close(output[1]);
  line_ = input[1];
  why_ = wait_for_holder(output[0]);
  close(output[0]);
  if (why_.empty() && !is_populated(expected)) why_ = "its scope is not at " + expected;
  if (!why_.empty()) let_go();
  return why_.empty();
}

// Empty: it is in the scope. Else what systemd-run said.
std::string DelegatedScope::wait_for_holder(int said) {
  if (holder_ < 0) return std::string("start systemd-run: ") + strerror(errno);
  // SIGPIPE is blocked in a launcher; what a holder that is gone has said is read below.
  if (write(line_, kReady.data(), kReady.size()) < 0 && errno != EPIPE) return strerror(errno);
  std::string text;
  char buffer[512];
  while (text != kReady) {
    const std::int64_t left = deadline_ms_ - os::monotonic_ms();
    pollfd waiting{said, POLLIN, 0};
    if (left <= 0 || poll(&waiting, 1, static_cast<int>(left)) == 0) {
      kill(holder_, SIGKILL);
      return "systemd did not answer within " + std::to_string(timeout_ms_ / 1000) + " s";
    }
    const ssize_t got = read(said, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      while (text.ends_with('\n')) text.pop_back();
      return text.empty() ? "systemd-run ended without a word" : text;
    }
    text.append(buffer, static_cast<std::size_t>(got));
  }
  return {};
}

void DelegatedScope::let_go() {
  if (line_ >= 0) close(line_);
  line_ = -1;
  if (holder_ < 0) return;
  while (waitpid(holder_, nullptr, 0) < 0 && errno == EINTR) {
  }
  holder_ = -1;
}

}  // namespace gpu_platform::node
