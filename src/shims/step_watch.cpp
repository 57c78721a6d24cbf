#include "shims/step_watch.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <ctime>
#include <utility>

#include <fmt/format.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpu_platform::shims {

namespace {

constexpr std::int64_t kSecond = 1000;
constexpr std::int64_t kKillWait = 30 * kSecond;  // as Slurm's KillWait

std::int64_t milliseconds_up() {
  timespec now = {};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return now.tv_sec * kSecond + now.tv_nsec / 1'000'000;
}

void tell(const std::string& text) {
  const std::string line = "srun: " + text + "\n";
  [[maybe_unused]] const ssize_t written = ::write(2, line.data(), line.size());
}

}  // namespace

base::Result<StepWatch> StepWatch::begin(const WatchRules& rules) {
  sigset_t watched;
  sigemptyset(&watched);
  for (const int number : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT})
    sigaddset(&watched, number);
  ::sigprocmask(SIG_BLOCK, &watched, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  const int fd = ::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd < 0) return std::unexpected(base::system_error("signalfd", errno));
  StepWatch watch(rules, fd);
  if (rules.seconds) {
    watch.end_ms_ = milliseconds_up() + *rules.seconds * kSecond;
    watch.why_ = "the step's time limit (--time)";
  }
  return watch;
}

StepWatch::StepWatch(StepWatch&& other) noexcept
    : rules_(other.rules_),
      fd_(std::exchange(other.fd_, -1)),
      tasks_(std::exchange(other.tasks_, {})),
      end_ms_(other.end_ms_),
      why_(other.why_) {}

StepWatch::~StepWatch() {
  send(SIGKILL);
  if (fd_ >= 0) ::close(fd_);
}

void StepWatch::send(int signal) const {
  for (const auto& [pid, rank] : tasks_) {
    // The group is there from a task's first moments on, and not before.
    if (::kill(-pid, signal) != 0) ::kill(pid, signal);
  }
}

void StepWatch::stop(const std::string& reason) {
  tell(fmt::format("error: step {}: tasks were killed: {}", rules_.step, reason));
  send(SIGKILL);
  end_ms_.reset();
}

std::string StepWatch::ranks() const {
  std::vector<std::uint32_t> all;
  for (const auto& [pid, rank] : tasks_) all.push_back(rank);
  std::ranges::sort(all);
  std::string text;
  for (std::size_t i = 0; i < all.size();) {
    std::size_t last = i;
    while (last + 1 < all.size() && all[last + 1] == all[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", all[i]);
    if (last > i) text += fmt::format("-{}", all[last]);
    i = last + 1;
  }
  return text;
}

void StepWatch::end_by_interrupt() {
  tell(fmt::format("sending Ctrl-C to StepId={}", rules_.step));
  is_ending_ = true;
  for (const int number : {SIGINT, SIGCONT, SIGTERM}) send(number);
  end_ms_ = milliseconds_up() + kKillWait;
  why_ = "they did not end after Ctrl-C";
}

// The first Ctrl-C tells of the tasks unless options say otherwise, a second one within a second
// ends them, the third kills them.
void StepWatch::interrupted() {
  const std::int64_t now = milliseconds_up();
  if (is_ending_) {
    tell("forcing job termination");
    send(SIGKILL);
  } else if (rules_.on_interrupt == OnInterrupt::kEnd ||
             (interrupted_ms_ && now - *interrupted_ms_ <= kSecond)) {
    end_by_interrupt();
  } else if (rules_.on_interrupt == OnInterrupt::kPassOn) {
    send(SIGINT);
  } else {
    tell("interrupt (one more within 1 sec to abort)");
    tell(fmt::format("StepId={} task{} {}: running", rules_.step, tasks_.size() == 1 ? "" : "s",
                     ranks()));
  }
  interrupted_ms_ = now;
}

void StepWatch::take_signals() {
  signalfd_siginfo info = {};
  while (::read(fd_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    const int number = static_cast<int>(info.ssi_signo);
    const bool is_of_a_process =
        info.ssi_code == SI_USER || info.ssi_code == SI_QUEUE || info.ssi_code == SI_TKILL;
    const auto sender = static_cast<pid_t>(info.ssi_pid);
    // Every process of the job has it already.
    const bool is_for_all = is_of_a_process && (sender == 0 || sender == rules_.starter);
    if (number == SIGCHLD || is_for_all) continue;
    if (rules_.shares_group) {
      if (is_of_a_process) send(number);
      continue;
    }
    if (number == SIGINT) {
      interrupted();
    } else {
      send(number);
    }
  }
}

void StepWatch::reap() {
  while (true) {
    int status = 0;
    rusage used = {};
    const pid_t ended = ::wait4(-1, &status, WNOHANG, &used);
    if (ended <= 0) return;
    const auto task = tasks_.find(ended);
    if (task == tasks_.end()) continue;
    usage_.add(task->second, status, used);
    tasks_.erase(task);
    if (has_first_ended_ || tasks_.empty()) continue;
    if (rules_.ends_on_failure && status != 0) {
      has_first_ended_ = true;
      stop("another one failed (--kill-on-bad-exit)");
    } else if (rules_.seconds_after_end && !rules_.ends_on_failure) {
      has_first_ended_ = true;
      const std::int64_t then = milliseconds_up() + *rules_.seconds_after_end * kSecond;
      if (!end_ms_ || then < *end_ms_) {
        end_ms_ = then;
        why_ = "another one had ended (--wait)";
      }
    }
  }
}

int StepWatch::patience_ms() const {
  if (!end_ms_) return -1;
  return static_cast<int>(std::clamp<std::int64_t>(*end_ms_ - milliseconds_up(), 0, INT_MAX));
}

int StepWatch::wait(TaskStreams& streams) {
  for (reap(); !tasks_.empty(); reap()) {
    std::vector<pollfd> waiting = {{fd_, POLLIN, 0}};
    streams.add_to(waiting);
    const int found = ::poll(waiting.data(), waiting.size(), patience_ms());
    if (end_ms_ && milliseconds_up() >= *end_ms_) stop(why_);
    if (found <= 0) continue;
    take_signals();
    streams.handle(waiting);
  }
  streams.finish();
  return usage_.code();
}

}  // namespace gpu_platform::shims
