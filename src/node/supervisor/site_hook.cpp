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

#include "node/site_hooks.h"
#include "node/small_file.h"
#include "node/syscalls.h"

namespace gpu_platform::node {

namespace {

constexpr std::size_t kStackSize = 64 * 1024;
constexpr std::uint64_t kKeptOutput = 64 * 1024;
constexpr std::size_t kLastWords = 120;  // bytes

// Everything the child needs, made ready before it exists: it shares our memory, so it must not
// allocate.
struct HookPlan {
  const char* file = nullptr;
  const char* oom_score = nullptr;
  const std::vector<int>* entrances = nullptr;
  int cgroup_procs = -1;  // -1: no cgroup
  int output_fd = -1;
  std::vector<char*> environment;
  const char* failed = nullptr;  // a step
  int error = 0;
};

[[noreturn]] void give_up(HookPlan& plan, const char* step) {
  plan.failed = step;
  plan.error = errno;
  _exit(127);
}

bool enter(const std::vector<int>& entrances) {
  return std::ranges::all_of(entrances, [](int fd) { return write(fd, "0", 1) == 1; });
}

[[noreturn]] void hook_main(void* argument) {
  HookPlan& plan = *static_cast<HookPlan*>(argument);
  if (setsid() < 0) give_up(plan, "setsid");
  // Best effort, as for the job itself.
  if (plan.oom_score != nullptr) {
    write_small_file(AT_FDCWD, "/proc/self/oom_score_adj", plan.oom_score);
  }
  if (plan.cgroup_procs >= 0 && write(plan.cgroup_procs, "0", 1) != 1) {
    give_up(plan, "enter the job's cgroup");
  }
  if (!enter(*plan.entrances)) give_up(plan, "enter the groups that limit the job");
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null < 0 || dup2(null, 0) < 0) give_up(plan, "open /dev/null");
  if (dup2(plan.output_fd, 1) < 0 || dup2(plan.output_fd, 2) < 0) give_up(plan, "its output");
  umask(022);
  if (chdir("/") != 0) give_up(plan, "change to /");
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  char* arguments[] = {const_cast<char*>(plan.file), nullptr};
  execve(plan.file, arguments, plan.environment.data());
  give_up(plan, "execute it");
}

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
  if (const std::string why = objection_to_hook(options.file); !why.empty()) return fail(why);
  if (!pump_.open()) return fail(std::string("make its pipe: ") + strerror(errno));
  HookPlan plan;
  plan.file = options.file.c_str();
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
  alignas(16) char stack[kStackSize];
  pid_ = spawn_sharing_memory(hook_main, &plan, {stack, sizeof stack}, -1);
  const int spawn_error = errno;
  if (plan.cgroup_procs >= 0) close(plan.cgroup_procs);
  pump_.close_write_end();
  if (pid_ < 0) return fail(std::string("start a process: ") + strerror(spawn_error));
  if (plan.failed == nullptr) return;
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  fail(std::string(plan.failed) + ": " + strerror(plan.error));
}

void SiteHook::ended(int status) {
  pid_ = -1;
  has_ended_ = true;
  pump_.pump();
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
