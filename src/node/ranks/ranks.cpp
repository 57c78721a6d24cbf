#include "node/ranks/ranks.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "os/clock.h"

namespace gpu_platform::node {

namespace {

constexpr int kUsage = 2;
constexpr std::int64_t kMillisecond = 1'000'000;
constexpr std::int64_t kSecond = 1'000'000'000;

class Ranks {
 public:
  Ranks(std::uint64_t grace_ms, char** command) : grace_ms_(grace_ms), command_(command) {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &mask_);
  }

  void start(const char* variables) {
    const pid_t self = getpid();
    const pid_t pid = fork();
    if (pid == 0) become(variables, self);
    if (pid > 0) {
      pids_.push_back(pid);
    } else {
      fprintf(stderr, "gpu-platform: start a process of the job: %s\n", strerror(errno));
      note(128 << 8);
    }
  }

  // The status, as waitpid gives it, that is the job's.
  int wait() {
    while (!pids_.empty()) {
      reap();
      if (has_failed_ && kill_at_ == 0) {
        tell(SIGTERM);
        kill_at_ = os::boot_ns() + static_cast<std::int64_t>(grace_ms_) * kMillisecond;
      }
      if (pids_.empty()) break;
      if (kill_at_ != 0 && os::boot_ns() >= kill_at_) tell(SIGKILL);
      sleep_until_child();
    }
    return status_;
  }

 private:
  [[noreturn]] void become(const char* variables, pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);  // it was gone before
    std::string_view rest = variables;
    while (!rest.empty()) {
      const std::size_t end = rest.find('\n');
      const std::string line(rest.substr(0, end));
      const std::size_t equals = line.find('=');
      setenv(line.substr(0, equals).c_str(), line.c_str() + equals + 1, 1);
      rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    }
    sigprocmask(SIG_SETMASK, &mask_, nullptr);
    execvp(command_[0], command_);
    const int error = errno;
    fprintf(stderr, "gpu-platform: execute %s: %s\n", command_[0], strerror(error));
    _exit(error == ENOENT || error == ENOTDIR ? 127 : 126);
  }

  void note(int status) {
    if (has_failed_ || status == 0) return;
    has_failed_ = true;
    status_ = status;
  }

  void reap() {
    int status = 0;
    for (pid_t pid = 0; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
      if (std::erase(pids_, pid) > 0) note(status);
    }
  }

  void tell(int signal) {
    for (const pid_t pid : pids_) kill(pid, signal);
  }

  // SIGCHLD is blocked, so none is missed between reaping and sleeping.
  void sleep_until_child() {
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    if (kill_at_ == 0) {
      sigwaitinfo(&child, nullptr);
      return;
    }
    // After SIGKILL there is nothing to be done but to wait.
    const std::int64_t left = kill_at_ - os::boot_ns();
    const std::int64_t pause = left > 0 ? left : kSecond;
    const timespec timeout{pause / kSecond, pause % kSecond};
    sigtimedwait(&child, nullptr, &timeout);
  }

  const std::uint64_t grace_ms_;
  char** const command_;
  sigset_t mask_{};
  std::vector<pid_t> pids_;
  bool has_failed_ = false;
  int status_ = 0;
  std::int64_t kill_at_ = 0;  // on the boot clock; 0: no process has been told to end yet
};

// No core is dumped: the process that died has left its own.
void end_by(int signal) {
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  ::signal(signal, SIG_DFL);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, signal);
  raise(signal);
  sigprocmask(SIG_UNBLOCK, &one, nullptr);
}

}  // namespace

int run_ranks(int argc, char** argv) {
  std::uint64_t grace_ms = 0;
  int dashes = 3;
  while (dashes < argc && strcmp(argv[dashes], "--") != 0) ++dashes;
  const char* const end = argc > 2 ? argv[2] + strlen(argv[2]) : nullptr;
  if (end == nullptr || std::from_chars(argv[2], end, grace_ms).ptr != end || dashes == 3 ||
      dashes + 1 >= argc) {
    return kUsage;
  }
  Ranks ranks(grace_ms, argv + dashes + 1);
  for (int i = 3; i < dashes; ++i) ranks.start(argv[i]);
  const int status = ranks.wait();
  if (WIFSIGNALED(status)) {
    end_by(WTERMSIG(status));
    return 128 + WTERMSIG(status);
  }
  return WEXITSTATUS(status);
}

}  // namespace gpu_platform::node
