#include "bin/daemon_signals.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>

#include "os/clock.h"

namespace gpu_platform::bin {

DaemonSignals::DaemonSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, number);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signals_ = os::Descriptor(signalfd(-1, &signals, SFD_CLOEXEC));
}

bool DaemonSignals::is_told_to_end() {
  sigset_t pending;
  return sigpending(&pending) == 0 &&
         (sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGINT) == 1);
}

bool DaemonSignals::pause(base::Duration time) const {
  const std::int64_t end_ns = os::monotonic_ns() + time.value();
  while (true) {
    const std::int64_t left =
        base::whole_milliseconds(base::nanoseconds(end_ns - os::monotonic_ns()));
    if (left <= 0) return true;
    pollfd waiting{signals_.get(), POLLIN, 0};
    if (poll(&waiting, 1, static_cast<int>(left)) <= 0) continue;
    signalfd_siginfo info{};
    const bool is_read =
        read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info);
    if (is_read && info.ssi_signo != SIGHUP) return false;
  }
}

std::optional<ActingProcess> DaemonSignals::next() const {
  while (true) {
    signalfd_siginfo info{};
    const ssize_t n = read(signals_.get(), &info, sizeof info);
    if (n < 0 && errno == EINTR) continue;
    if (n != static_cast<ssize_t>(sizeof info) || info.ssi_signo != SIGHUP) return std::nullopt;
    return ActingProcess{info.ssi_uid, static_cast<std::int32_t>(info.ssi_pid)};
  }
}

}  // namespace gpu_platform::bin
