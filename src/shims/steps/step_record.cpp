#include "shims/steps/step_record.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/convert/job.h"
#include "api/convert/text_forms.h"
#include "base/utf8.h"
#include "client/client.h"
#include "client/profiles.h"
#include "client/request_text.h"
#include "client/session.h"
#include "model/step.h"

namespace gpu_platform::shims {

namespace {

// Most steps are shorter, and then one report says all.
constexpr base::Duration kBeforeFirstReport = base::milliseconds(300);
constexpr base::Duration kBetweenReports = base::milliseconds(300);
// How long srun waits for the report of the end, and how long that is tried at all.
constexpr int kEndTimeoutMs = 2000;
constexpr int kAttempts = 100;

base::Instant now() {
  timespec at = {};
  ::clock_gettime(CLOCK_REALTIME, &at);
  return base::Instant(at.tv_sec * 1'000'000'000LL + at.tv_nsec);
}

void wait(base::Duration duration) {
  timespec left = {duration.value() / 1'000'000'000, duration.value() % 1'000'000'000};
  while (::nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

std::int64_t microseconds(const timeval& time) {
  return time.tv_sec * 1'000'000LL + time.tv_usec;
}

int code_of(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Leaves the files and the locks of the step to its tasks, and its signals to srun.
void leave_everything() {
  const int nothing = ::open("/dev/null", O_RDWR);
  for (int fd = 0; nothing >= 0 && fd <= 2; ++fd) ::dup2(nothing, fd);
  ::syscall(SYS_close_range, 3U, ~0U, 0U);
  ::setpgid(0, 0);
}

struct Posting {
  std::string target;  // behind that of the job
  std::string text;
};

// Runs in a process of its own.
[[noreturn]] void post(const std::string& job, const std::vector<Posting>& reports) {
  auto servers = client::servers_to_try({}, client::environment_of_process());
  if (!servers) ::_exit(1);
  client::Client client(*std::move(servers));
  for (const auto& [target, text] : reports) {
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      const auto answer = client.post("/v1/jobs/" + job + target, text);
      // A refusal is as good as an answer: saying it again would not help.
      if (answer || !answer.error().is_passing()) break;
      wait(kBetweenReports);
    }
  }
  ::_exit(0);
}

// Waits until the process has ended, for a while.
void wait_for_process(pid_t process) {
  const auto fd = static_cast<int>(::syscall(SYS_pidfd_open, process, 0));
  if (fd < 0) return;
  pollfd ended = {fd, POLLIN, 0};
  while (::poll(&ended, 1, kEndTimeoutMs) < 0 && errno == EINTR) {
  }
  ::close(fd);
  ::waitpid(process, nullptr, WNOHANG);
}

}  // namespace

void StepUsage::add(std::uint32_t rank, int status, const rusage& used) {
  if (!has_any_ || code_of(status) > code_) {
    code_ = code_of(status);
    status_ = status;
  }
  const std::int64_t cpu_us = microseconds(used.ru_utime) + microseconds(used.ru_stime);
  if (!has_any_ || cpu_us < least_us_) {
    least_us_ = cpu_us;
    least_task_ = rank;
  }
  if (!has_any_ || used.ru_maxrss > peak_kib_) {
    peak_kib_ = used.ru_maxrss;
    peak_task_ = rank;
  }
  user_us_ += microseconds(used.ru_utime);
  system_us_ += microseconds(used.ru_stime);
  all_kib_ += used.ru_maxrss;
  has_any_ = true;
}

int StepUsage::signal() const {
  return WIFSIGNALED(status_) ? WTERMSIG(status_) : 0;
}

void StepUsage::put(v1::JobStep& report) const {
  if (signal() != 0) {
    report.set_signal(api::signal_name(static_cast<std::uint8_t>(signal())));
  } else {
    report.set_exit_code(static_cast<std::uint32_t>(WEXITSTATUS(status_)));
  }
  report.set_user_cpu_seconds(static_cast<double>(user_us_) / 1e6);
  report.set_system_cpu_seconds(static_cast<double>(system_us_) / 1e6);
  report.set_least_cpu_seconds(static_cast<double>(least_us_) / 1e6);
  report.set_least_cpu_task(least_task_);
  report.set_peak_memory_bytes(static_cast<std::uint64_t>(peak_kib_) * 1024);
  report.set_all_memory_bytes(static_cast<std::uint64_t>(all_kib_) * 1024);
  report.set_peak_memory_task(peak_task_);
}

std::string step_name(const std::string& command) {
  std::string name;
  std::string_view rest = std::string_view(command).substr(command.rfind('/') + 1);
  while (!rest.empty()) {
    const std::string_view before = rest;
    const bool is_harmful = base::is_harmful(base::take_character(rest));
    const std::string_view character = before.substr(0, before.size() - rest.size());
    if (name.size() + character.size() > model::kMaxStepNameBytes) break;
    name += is_harmful ? std::string_view("?") : character;
  }
  return name;
}

std::string timed_out_label(std::uint32_t number) {
  return fmt::format("slurm.timed_out.{}", number);
}

v1::JobStep running_report(const StepFacts& facts, base::Instant started_at) {
  v1::JobStep report;
  report.set_attempt(facts.attempt);
  report.set_number(facts.number);
  report.set_name(step_name(facts.command));
  report.set_tasks(facts.tasks);
  report.mutable_nodes()->Assign(facts.nodes.begin(), facts.nodes.end());
  report.set_cpus(facts.cpus);
  report.set_memory_bytes(facts.memory_bytes);
  report.set_gpus(facts.gpus);
  api::to_proto(started_at, *report.mutable_started_at());
  return report;
}

StepRecorder::~StepRecorder() {
  stop_first_report();
}

void StepRecorder::stop_first_report() {
  if (reporter_ <= 0) return;
  ::kill(reporter_, SIGKILL);
  ::waitpid(reporter_, nullptr, 0);
  reporter_ = 0;
}

void StepRecorder::begin() {
  started_at_ = now();
  const std::string report = client::request_text(running_report(facts_, started_at_));
  const pid_t self = ::getpid();
  const pid_t made = ::fork();
  if (made != 0) {
    reporter_ = made;
    return;
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != self) ::_exit(1);
  leave_everything();
  wait(kBeforeFirstReport);
  post(facts_.job, {{"/steps", report}});
}

void StepRecorder::end(const StepUsage& usage, bool has_timed_out) {
  stop_first_report();
  v1::JobStep report = running_report(facts_, started_at_);
  api::to_proto(std::max(now(), started_at_), *report.mutable_ended_at());
  usage.put(report);
  std::vector<Posting> reports;
  if (has_timed_out) {
    v1::UpdateJobRequest update;
    (*update.mutable_spec()->mutable_labels())[timed_out_label(facts_.number)] =
        fmt::format("{}", facts_.attempt);
    reports.push_back({"/update", client::request_text(update)});
  }
  reports.push_back({"/steps", client::request_text(report)});
  const pid_t made = ::fork();
  if (made == 0) {
    leave_everything();
    post(facts_.job, reports);
  }
  if (made > 0) wait_for_process(made);
}

}  // namespace gpu_platform::shims
