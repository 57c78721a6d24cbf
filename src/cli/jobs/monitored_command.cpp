#include "cli/jobs/monitored_command.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "cli/jobs/gpu_sampler.h"
#include "os/child_process.h"
#include "os/clock.h"
#include "os/descriptor.h"

namespace gpu_platform::cli {

namespace {

// How long the last reading may take when the command has ended.
constexpr std::chrono::seconds kPatience{5};
constexpr int kNoSuchCommand = 127;
constexpr int kNotStarted = 126;

// Those that are passed on, and that of a child's end. SIGTTOU: the terminal may be given away
// while we are not in its foreground.
sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD, SIGTTOU}) {
    sigaddset(&set, number);
  }
  return set;
}

// The readings, on a thread that is left alone if the driver never answers.
class ReadingThread {
 public:
  explicit ReadingThread(MonitoredGpus monitored)
      : shared_(std::make_shared<Shared>(std::move(monitored))),
        thread_([shared = shared_] { work(*shared); }) {}

  ~ReadingThread() {
    if (thread_.joinable()) thread_.detach();
  }
  ReadingThread(const ReadingThread&) = delete;
  ReadingThread& operator=(const ReadingThread&) = delete;

  telemetry::UseSummary finish() {
    std::unique_lock lock(shared_->mutex);
    shared_->must_end = true;
    shared_->wake.notify_all();
    const bool has_ended =
        shared_->wake.wait_for(lock, kPatience, [this] { return shared_->has_ended; });
    telemetry::UseSummary summary = shared_->latest;
    lock.unlock();
    if (has_ended) thread_.join();
    return summary;
  }

 private:
  struct Shared {
    explicit Shared(MonitoredGpus what)
        : monitored(std::move(what)),
          sampler(*monitored.library, monitored.gpus, monitored.interval, os::wall_now()),
          latest(sampler.summary()) {}

    MonitoredGpus monitored;
    GpuSampler sampler;  // of the thread
    std::mutex mutex;
    std::condition_variable wake;
    // All guarded by the mutex.
    telemetry::UseSummary latest;
    bool must_end = false;
    bool has_ended = false;
  };

  static void work(Shared& shared) {
    const auto interval = std::chrono::nanoseconds(shared.monitored.interval.value());
    auto next = std::chrono::steady_clock::now();
    std::unique_lock lock(shared.mutex);
    while (!shared.must_end) {
      lock.unlock();
      shared.sampler.read(os::wall_now());
      lock.lock();
      shared.latest = shared.sampler.summary();
      // A driver that is slower than the interval is not asked without a pause.
      next = std::max(next + interval, std::chrono::steady_clock::now());
      shared.wake.wait_until(lock, next, [&] { return shared.must_end; });
    }
    lock.unlock();
    shared.sampler.end(os::wall_now());
    lock.lock();
    shared.latest = shared.sampler.summary();
    shared.has_ended = true;
    shared.wake.notify_all();
  }

  const std::shared_ptr<Shared> shared_;
  std::thread thread_;
};

// Has the command in the foreground of our terminal while it lives, as a shell would.
class Foreground {
 public:
  explicit Foreground(pid_t child)
      : child_(child), is_ours_(isatty(STDIN_FILENO) == 1 && tcgetpgrp(STDIN_FILENO) == getpgrp()) {
    give();
  }
  ~Foreground() { take(); }
  Foreground(const Foreground&) = delete;
  Foreground& operator=(const Foreground&) = delete;

  void give() const {
    if (!is_ours_) return;
    tcsetpgrp(STDIN_FILENO, child_);
    // It may have been stopped because it read before.
    kill(-child_, SIGCONT);
  }
  void take() const {
    if (is_ours_) tcsetpgrp(STDIN_FILENO, getpgrp());
  }
  // The person stopped the command: our shell is to have the terminal.
  void stop_with_it() const {
    if (!is_ours_) return;
    take();
    raise(SIGSTOP);
    give();
  }

 private:
  const pid_t child_;
  const bool is_ours_;
};

// The end of the command; nothing while it lives.
std::optional<int> look_at(pid_t child, const Foreground& foreground) {
  int status = 0;
  pid_t found = 0;
  while ((found = waitpid(child, &status, WNOHANG | WUNTRACED)) == child) {
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    if (WIFSIGNALED(status)) return 128 + WTERMSIG(status);
    if (WIFSTOPPED(status)) foreground.stop_with_it();
  }
  return found < 0 && errno == ECHILD ? std::optional(kNotStarted) : std::nullopt;
}

int wait_for(pid_t child, int signals) {
  const Foreground foreground(child);
  while (true) {
    if (const auto end = look_at(child, foreground)) return *end;
    pollfd watched{signals, POLLIN, 0};
    if (poll(&watched, 1, -1) <= 0) continue;
    signalfd_siginfo signal{};
    if (read(signals, &signal, sizeof signal) != sizeof signal) continue;
    const int number = static_cast<int>(signal.ssi_signo);
    if (number != SIGCHLD && number != SIGTTOU) kill(-child, number);
  }
}

}  // namespace

MonitoredEnd run_monitored(const std::vector<std::string>& command, MonitoredGpus monitored) {
  const sigset_t watched = watched_signals();
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &watched, &before);
  const os::Descriptor signals(signalfd(-1, &watched, SFD_CLOEXEC));
  MonitoredEnd end;
  std::optional<ReadingThread> readings;
  if (monitored.library != nullptr) readings.emplace(std::move(monitored));
  const auto child = os::start_child_process({.words = command,
                                              .searches_path = true,
                                              .input = STDIN_FILENO,
                                              .output = STDOUT_FILENO,
                                              .errors = os::kShared});
  if (child) {
    end.exit_code = wait_for(*child, signals.get());
  } else {
    end.exit_code = child.error() == ENOENT ? kNoSuchCommand : kNotStarted;
    end.problem = fmt::format("{}: {}", command.front(), std::strerror(child.error()));
  }
  if (readings) end.use = readings->finish();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return end;
}

}  // namespace gpu_platform::cli
