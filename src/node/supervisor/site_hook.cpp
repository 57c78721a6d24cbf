#include "node/supervisor/site_hook.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "node/raw_call.h"
#include "node/session_keyring.h"
#include "node/site_hooks.h"
#include "node/syscalls.h"

namespace gpu_platform::node {

namespace {

constexpr std::uint64_t kKeptOutput = 64 * 1024;
constexpr std::size_t kLastWords = 120;  // bytes

}  // namespace

// Everything the child needs, made ready before it exists.
struct SiteHook::Plan {
  std::string file;
  const char* oom_score = nullptr;
  const std::vector<int>* entrances = nullptr;
  int cgroup_procs = -1;  // -1: no cgroup
  int output_fd = -1;
  std::vector<char*> environment;
  StartReport* report = nullptr;
};

namespace {

[[noreturn]] void give_up(StartReport& report, const char* step, long result) {
  report.error = static_cast<int>(-result);
  report.set_why(step);
  report.has_failed = true;
  raw_exit(127);
}

}  // namespace

void SiteHook::run_child(Plan& plan) {
  const auto check = [&plan](long result, const char* step) {
    if (result < 0) give_up(*plan.report, step, result);
  };
  check(raw_call(SYS_setsid), "setsid");
  if (plan.oom_score != nullptr) {  // best effort, as for the job itself
    const int fd = raw_open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) raw_write_text(fd, plan.oom_score, strlen(plan.oom_score));
    if (fd >= 0) raw_close(fd);
  }
  if (plan.cgroup_procs >= 0) {
    check(raw_call(SYS_write, plan.cgroup_procs, "0", 1), "enter the job's cgroup");
  }
  for (const int fd : *plan.entrances) {
    check(raw_call(SYS_write, fd, "0", 1), "enter the groups that limit the job");
  }
  const int null = raw_open("/dev/null", O_RDONLY | O_CLOEXEC);
  check(null, "open /dev/null");
  check(raw_keep_as(null, 0), "open /dev/null");
  check(raw_keep_as(plan.output_fd, 1), "its output");
  check(raw_keep_as(plan.output_fd, 2), "its output");
  check(join_new_session_keyring(), "make a session keyring");
  raw_call(SYS_umask, 022);
  check(raw_call(SYS_chdir, "/"), "change to /");
  const std::uint64_t none = 0;
  raw_call(SYS_rt_sigprocmask, SIG_SETMASK, &none, nullptr, sizeof none);
  char* const arguments[] = {plan.file.data(), nullptr};
  const long result =
      raw_call(SYS_execve, plan.file.c_str(), &arguments[0], plan.environment.data());
  give_up(*plan.report, "execute it", result);
}

namespace {

// One line of plain characters: it is shown wherever a reason is.
std::string made_plain(std::string text) {
  for (char& c : text) {
    if (c < ' ' || c > '~') c = ' ';
  }
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

}  // namespace

SiteHook::SiteHook(int output, std::string folder, std::string name)
    : pump_({output, std::move(folder), std::move(name), kKeptOutput, 1, 0}) {}

void SiteHook::fail(std::string why) {
  has_ended_ = true;
  failure_ = std::move(why);
}

void SiteHook::start(const Options& options) {
  // Checked again: it may have been replaced since the launcher began.
  if (const std::string why = error_in_hook(options.file); !why.empty()) return fail(why);
  if (!pump_.open()) return fail(std::string("make its pipe: ") + strerror(errno));
  report_.emplace();
  if (!report_->is_there()) return fail(std::string("make a page: ") + strerror(errno));
  StartReport& report = **report_;
  Plan plan;
  plan.report = &report;
  plan.file = options.file;
  plan.oom_score = options.oom_score;
  plan.entrances = options.entrances;
  plan.output_fd = pump_.write_end();
  for (const std::string& entry : options.environment) {
    plan.environment.push_back(const_cast<char*>(entry.c_str()));
  }
  plan.environment.push_back(nullptr);
  // It enters by itself: one born into a cgroup that was killed before is killed too by some
  // kernels (seen with Linux 6.18).
  if (options.cgroup_fd >= 0) {
    plan.cgroup_procs = openat(options.cgroup_fd, "cgroup.procs", O_WRONLY | O_CLOEXEC);
    if (plan.cgroup_procs < 0) return fail(std::string("open its cgroup: ") + strerror(errno));
  }
  pid_ = fork_into_cgroup(-1);
  if (pid_ == 0) run_child(plan);
  const int spawn_error = errno;
  // The child has its own.
  if (plan.cgroup_procs >= 0) close(plan.cgroup_procs);
  pump_.close_write_end();
  if (pid_ < 0) fail(std::string("start a process: ") + strerror(spawn_error));
}

void SiteHook::kill_now() const {
  if (pid_ > 0) kill(pid_, SIGKILL);
}

void SiteHook::ended(int status) {
  pid_ = -1;
  has_ended_ = true;
  pump_.pump();
  const StartReport& report = **report_;
  if (report.has_failed) {
    failure_ = report.why() + ": " + strerror(report.error);
    return;
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  if (killed_after_ms_ != 0) {
    failure_ = "not done after " + std::to_string(killed_after_ms_ / 1000) + " s, killed";
  } else if (WIFSIGNALED(status)) {
    failure_ = "signal " + std::to_string(WTERMSIG(status));
  } else {
    failure_ = "exit code " + std::to_string(WEXITSTATUS(status));
  }
  if (const std::string words = last_words(); !words.empty()) failure_ += ": " + words;
}

std::string SiteHook::last_words() const {
  const int fd = pump_.open_for_reading();
  struct stat about{};
  std::string text;
  if (fd >= 0 && fstat(fd, &about) == 0) {
    const auto size = static_cast<std::size_t>(about.st_size);
    text.resize(std::min(size, kLastWords));
    const ssize_t got = pread(fd, text.data(), text.size(), static_cast<off_t>(size - text.size()));
    text.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  }
  if (fd >= 0) close(fd);
  return made_plain(std::move(text));
}

}  // namespace gpu_platform::node
