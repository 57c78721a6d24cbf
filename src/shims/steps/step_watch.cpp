#include "shims/steps/step_watch.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <ctime>
#include <utility>

#include <fmt/format.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/parse.h"

namespace gpu_platform::shims {

namespace {

constexpr std::int64_t kSecond = 1000;
constexpr std::int64_t kKillWait = 30 * kSecond;  // as Slurm's KillWait

std::int64_t milliseconds_up() {
  timespec now = {};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return now.tv_sec * kSecond + now.tv_nsec / 1'000'000;
}

constexpr std::int64_t kWithoutCaller = 2 * kSecond;  // for tasks to end by themselves

// "0-3,7"
std::string listed(std::vector<std::uint32_t> ranks) {
  std::ranges::sort(ranks);
  std::string text;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", ranks[i]);
    if (last > i) text += fmt::format("-{}", ranks[last]);
    i = last + 1;
  }
  return text;
}

std::string words_of_end(int status) {
  if (WIFEXITED(status)) return fmt::format("Exited with exit code {}", WEXITSTATUS(status));
  const char* name = ::strsignal(WTERMSIG(status));
  return fmt::format("{}{}", name, WCOREDUMP(status) ? " (core dumped)" : "");
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
    watch.has_limit_ = true;
  }
  return watch;
}

StepWatch::StepWatch(StepWatch&& other) noexcept
    : rules_(other.rules_),
      fd_(std::exchange(other.fd_, -1)),
      tasks_(std::exchange(other.tasks_, {})),
      end_ms_(other.end_ms_),
      why_(other.why_),
      has_limit_(other.has_limit_) {}

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
  tell(fmt::format("error: step {}: tasks were killed: {}", rules_.step_id, reason));
  send(SIGKILL);
  end_ms_.reset();
}

// The step's time is over, or the time that its tasks had to end.
void StepWatch::come_to_the_end() {
  if (!has_limit_) return stop(why_);
  has_timed_out_ = true;
  tell(fmt::format("error: step {}: its tasks are ended: {}", rules_.step_id, why_));
  ask_to_stop(kKillWait, why_);
}

// They may end by themselves, until their time to end is over.
void StepWatch::ask_to_stop(std::int64_t grace_ms, const std::string& reason) {
  for (const int number : {SIGCONT, SIGTERM}) send(number);
  end_ms_ = milliseconds_up() + grace_ms;
  has_limit_ = false;
  why_ = reason;
}

void StepWatch::end_by_interrupt() {
  tell(fmt::format("sending Ctrl-C to StepId={}", rules_.step_id));
  is_ending_ = true;
  send(SIGINT);
  ask_to_stop(rules_.caller == nullptr ? kKillWait : kWithoutCaller,
              "they did not end after Ctrl-C");
}

// As Slurm's srun for a signal that is to end itself.
void StepWatch::end_at_once() {
  tell("forcing job termination");
  tell("Job step aborted: Waiting up to 32 seconds for job step to finish.");
  send(SIGKILL);
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
    if (rules_.caller != nullptr) tell(fmt::format("sending Ctrl-C to StepId={}", rules_.step_id));
    send(SIGINT);
  } else {
    tell("interrupt (one more within 1 sec to abort)");
    std::vector<std::uint32_t> ranks;
    for (const auto& [pid, rank] : tasks_) ranks.push_back(rank);
    tell(fmt::format("StepId={} task{} {}: running", rules_.step_id, ranks.size() == 1 ? "" : "s",
                     listed(ranks)));
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

// Signals of srun outside of the job are told in lines. Its end is that of the tasks.
void StepWatch::take_word() {
  const auto line = rules_.caller->read_line();
  if (!line) {
    has_caller_gone_ = true;
    return ask_to_stop(kWithoutCaller, "srun has gone");
  }
  constexpr std::string_view kSignal = "signal ";
  if (!line->starts_with(kSignal)) return;
  const auto number =
      base::parse_count(std::string_view(*line).substr(kSignal.size()), 1, SIGRTMAX);
  if (number) take_signal_of_caller(static_cast<int>(*number));
}

void StepWatch::take_signal_of_caller(int signal) {
  switch (signal) {
    case SIGINT:
      return interrupted();
    case SIGQUIT:
      tell("Quit");
      return end_at_once();
    case SIGTERM:
    case SIGHUP:
      return end_at_once();
    case SIGCONT:
      return tell("got SIGCONT");
    case SIGALRM:
      return;
    default:
      return send(signal);
  }
}

void StepWatch::tell_ends(const std::map<int, std::vector<std::uint32_t>>& ranks_by_status) const {
  for (const auto& [status, ranks] : ranks_by_status) {
    std::map<std::string, std::vector<std::uint32_t>> by_node;
    for (const std::uint32_t rank : ranks)
      if (rank < rules_.nodes.size()) by_node[rules_.nodes[rank]].push_back(rank);
    for (const auto& [node, on_node] : by_node) {
      tell(fmt::format("error: {}: task{} {}: {}", node, on_node.size() == 1 ? "" : "s",
                       listed(on_node), words_of_end(status)));
    }
  }
}

void StepWatch::reap() {
  std::map<int, std::vector<std::uint32_t>> failed;  // ranks by how they ended
  bool is_first = false;
  int first = 0;
  while (true) {
    int status = 0;
    rusage used = {};
    const pid_t ended = ::wait4(-1, &status, WNOHANG, &used);
    if (ended <= 0) break;
    const auto task = tasks_.find(ended);
    if (task == tasks_.end()) continue;
    usage_.add(task->second, status, used);
    if (status != 0) failed[status].push_back(task->second);
    tasks_.erase(task);
    if (has_first_ended_ || (is_first && (first != 0 || !rules_.ends_on_failure))) continue;
    is_first = true;
    first = status;
  }
  if (!is_ending_) tell_ends(failed);
  if (is_first && !tasks_.empty()) note_end(first);
}

// What the end of the first task, or of the first that failed, means for the others.
void StepWatch::note_end(int status) {
  if (rules_.ends_on_failure && status != 0) {
    has_first_ended_ = true;
    tell(fmt::format("error: step {}: tasks are ended: another one failed (--kill-on-bad-exit)",
                     rules_.step_id));
    ask_to_stop(kKillWait, "another one failed (--kill-on-bad-exit)");
  } else if (rules_.seconds_after_end && !rules_.ends_on_failure) {
    has_first_ended_ = true;
    const std::int64_t then = milliseconds_up() + *rules_.seconds_after_end * kSecond;
    if (end_ms_ && then >= *end_ms_) return;
    end_ms_ = then;
    has_limit_ = false;
    why_ = "another one had ended (--wait)";
  }
}

int StepWatch::poll_timeout_ms() const {
  if (!end_ms_) return -1;
  return static_cast<int>(std::clamp<std::int64_t>(*end_ms_ - milliseconds_up(), 0, INT_MAX));
}

int StepWatch::wait(TaskStreams& streams) {
  for (reap(); !tasks_.empty(); reap()) {
    std::vector<pollfd> waiting = {{fd_, POLLIN, 0}};
    const bool has_caller = rules_.caller != nullptr && !has_caller_gone_;
    waiting.push_back({has_caller ? rules_.caller->fd() : -1, POLLIN, 0});
    streams.add_to(waiting);
    const int found = ::poll(waiting.data(), waiting.size(), poll_timeout_ms());
    if (end_ms_ && milliseconds_up() >= *end_ms_) come_to_the_end();
    if (found <= 0) continue;
    take_signals();
    if (waiting[1].revents != 0) take_word();
    streams.handle(waiting);
  }
  streams.finish();
  return usage_.code();
}

}  // namespace gpu_platform::shims
