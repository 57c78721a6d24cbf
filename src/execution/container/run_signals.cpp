#include "execution/container/run_signals.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>

#include "node/syscalls.h"
#include "os/clock.h"

namespace gpu_platform::execution {

namespace {

constexpr unsigned kKillTimeout = 10;  // seconds
constexpr std::size_t kMaxOrders = 64;

extern "C" void end_at_once(int) {
  _exit(128 + SIGKILL);
}

int open_signals() {
  sigset_t ours;
  sigemptyset(&ours);
  sigaddset(&ours, SIGTERM);
  sigaddset(&ours, SIGUSR1);
  sigaddset(&ours, SIGINT);
  sigaddset(&ours, SIGWINCH);
  sigaddset(&ours, node::container_signal_number());
  sigprocmask(SIG_BLOCK, &ours, nullptr);
  struct sigaction at_once{};
  at_once.sa_handler = end_at_once;
  sigaction(SIGALRM, &at_once, nullptr);
  // The others that a terminal sends are none of our business.
  for (const int other : {SIGPIPE, SIGHUP, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU}) {
    signal(other, SIG_IGN);
  }
  return signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
}

}  // namespace

RunSignals::RunSignals() : fd_(open_signals()) {}

bool RunSignals::take() {
  signalfd_siginfo info;
  while (read(fd_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    // A person at the terminal may give up what has not begun.
    if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT) is_stopped_ = true;
    if (info.ssi_signo == SIGWINCH) is_resized_ = true;
    if (info.ssi_signo == SIGUSR1 && !std::exchange(is_killed_, true)) alarm(kKillTimeout);
    const bool is_order = static_cast<int>(info.ssi_signo) == node::container_signal_number();
    if (is_order && owed_.size() < kMaxOrders) owed_.push_back(info.ssi_int);
  }
  pass_on();
  return !has_begun_ && !is_making_ && (is_stopped_ || is_killed_);
}

bool RunSignals::wait(base::Duration time) {
  const std::int64_t until = os::boot_ms() + base::whole_milliseconds(time);
  for (std::int64_t left = 1; left > 0; left = until - os::boot_ms()) {
    pollfd signals{fd_.get(), POLLIN, 0};
    poll(&signals, 1, static_cast<int>(std::max<std::int64_t>(until - os::boot_ms(), 0)));
    if (take()) return false;
  }
  return true;
}

void RunSignals::pass_to(HeldProcess first) {
  first_ = std::move(first);
  pass_on();
}

void RunSignals::pass_on() {
  if (!first_.is_there()) return;
  for (const int signal : std::exchange(owed_, {})) signal_processes_beside(first_, signal);
  if (is_killed_) node::signal_pidfd(first_.handle.get(), SIGKILL);
}

}  // namespace gpu_platform::execution
