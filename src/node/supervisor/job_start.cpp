#include "node/supervisor/job_start.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "node/packet_socket.h"
#include "node/syscalls.h"

namespace gpu_platform::node {

namespace {

constexpr std::size_t kStackSize = 64 * 1024;
constexpr std::size_t kMaxPath = 4096;
constexpr const char* kDefaultSearchPath = "/usr/local/bin:/usr/bin:/bin";

enum class Step {
  kNone,
  kSession,
  kLimits,
  kInput,
  kUser,
  kFolders,
  kWorkdir,
  kOutput,
  kError,
  kExecute
};

// Everything the child needs, made ready before it exists: it shares our memory, so it must not
// allocate.
struct ChildPlan {
  const LaunchRequest* request = nullptr;
  const char* oom_score = nullptr;
  const char* search_path = nullptr;
  const CpuBinding* binding = nullptr;
  const std::vector<int>* entrances = nullptr;  // see JobLimits
  const PrivateFolders* folders = nullptr;      // null: the host's
  int mounts_fd = -1;                           // of the job's first process; -1: this is the first
  int mounts_socket = -1;                       // through which the first one hands its own back
  bool truncates = false;
  int output_fd = -1;
  int input_fd = -1;
  std::vector<char*> arguments;
  std::vector<char*> environment;
  char path[kMaxPath];
  Step failed = Step::kNone;
  int error = 0;
};

[[noreturn]] void give_up(ChildPlan& plan, Step step) {
  plan.failed = step;
  plan.error = errno;
  _exit(127);
}

// The raw calls: those of the C library mean all threads of a process, here it is one that borrows
// another's memory.
bool become_user(const Identity& user) {
  return syscall(SYS_setgroups, user.groups.size(), user.groups.data()) == 0 &&
         syscall(SYS_setresgid, user.gid, user.gid, user.gid) == 0 &&
         syscall(SYS_setresuid, user.uid, user.uid, user.uid) == 0;
}

void set_oom_score(const char* score) {
  const int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  // Best effort: a job that keeps the protection of its supervisor is a smaller evil than no job.
  [[maybe_unused]] const ssize_t wrote = write(fd, score, strlen(score));
  close(fd);
}

bool is_missing(int error) {
  return error == ENOENT || error == ENOTDIR;
}

// As execvpe, without its detour through a shell. Returns only on failure, with errno of the most
// telling attempt.
void execute(ChildPlan& plan) {
  char* const program = plan.arguments.front();
  if (strchr(program, '/') != nullptr) {
    execve(program, plan.arguments.data(), plan.environment.data());
    return;
  }
  const std::size_t program_size = strlen(program) + 1;
  int verdict = ENOENT;
  for (const char* at = plan.search_path; at != nullptr;) {
    const char* end = strchr(at, ':');
    const std::size_t size = end == nullptr ? strlen(at) : static_cast<std::size_t>(end - at);
    if (size + 1 + program_size <= kMaxPath) {
      memcpy(plan.path, at, size);
      if (size > 0) plan.path[size] = '/';  // an empty entry is the current directory
      memcpy(plan.path + size + (size > 0 ? 1 : 0), program, program_size);
      execve(plan.path, plan.arguments.data(), plan.environment.data());
      if (!is_missing(errno)) verdict = errno;
      if (!is_missing(errno) && errno != EACCES) break;
    }
    at = end == nullptr ? nullptr : end + 1;
  }
  errno = verdict;
}

void unblock_all_signals() {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

// Between the two we are root with the user's rights: what is opened is opened as by the user, and
// what only root may do can follow.
bool borrow_user(const Identity& user) {
  return syscall(SYS_setgroups, user.groups.size(), user.groups.data()) == 0 &&
         syscall(SYS_setresgid, -1, user.gid, -1) == 0 &&
         syscall(SYS_setresuid, -1, user.uid, -1) == 0;
}
bool return_user() {
  return syscall(SYS_setresuid, -1, 0, -1) == 0 && syscall(SYS_setresgid, -1, 0, -1) == 0;
}

bool enter_limits(const std::vector<int>& entrances) {
  for (const int fd : entrances) {
    if (write(fd, "0", 1) != 1) return false;
  }
  return true;
}

// Texts of a request end with a NUL of their own.
const char* c_text(std::string_view text) {
  return text.data();
}

// Always to append: two streams may share a file, and so may attempts.
int open_users_file(const ChildPlan& plan, std::string_view path) {
  const int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY;
  return open(c_text(path), plan.truncates ? flags | O_TRUNC : flags, 0666);
}

void open_outputs(ChildPlan& plan) {
  const LaunchRequest& request = *plan.request;
  if (plan.output_fd < 0) {
    const int fd = open_users_file(plan, request.output);
    if (fd < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0) give_up(plan, Step::kOutput);
  }
  if (request.error.size() > 1) {
    const int fd = open_users_file(plan, request.error);
    if (fd < 0 || dup2(fd, 2) < 0) give_up(plan, Step::kError);
  }
}

// A process that has ended has no mounts to be found by any more, however soon one looks.
void hand_back_mounts(const ChildPlan& plan) {
  const int mounts = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
  if (mounts < 0) return;
  send_packet(plan.mounts_socket, "mounts", mounts);
  close(mounts);
}

// Directory and output files are those that the user named, from before /tmp becomes the job's own.
void make_folders_private(ChildPlan& plan) {
  const LaunchRequest& request = *plan.request;
  if (!enter_mount_namespace()) give_up(plan, Step::kFolders);
  if (!borrow_user(request.user)) give_up(plan, Step::kUser);
  if (chdir(c_text(request.workdir)) != 0) give_up(plan, Step::kWorkdir);
  open_outputs(plan);
  int workdir = -1;
  if (!plan.folders->workdir.empty()) {
    workdir = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (workdir < 0) give_up(plan, Step::kWorkdir);
  }
  if (!return_user()) give_up(plan, Step::kUser);
  umask(022);  // of folders that lead to the working directory
  if (!replace_folders(*plan.folders, workdir)) give_up(plan, Step::kFolders);
  hand_back_mounts(plan);
  umask(request.umask);
}

// As the first process, but into the folders that were made for it.
void enter_private_folders(ChildPlan& plan) {
  const LaunchRequest& request = *plan.request;
  if (!borrow_user(request.user)) give_up(plan, Step::kUser);
  open_outputs(plan);
  if (!return_user()) give_up(plan, Step::kUser);
  if (setns(plan.mounts_fd, CLONE_NEWNS) != 0) give_up(plan, Step::kFolders);
}

// A terminal becomes that of the session whose leader we are.
bool take_input(const ChildPlan& plan) {
  if (plan.input_fd < 0) return true;
  if (plan.request->terminal && ioctl(plan.input_fd, TIOCSCTTY, 0) != 0) return false;
  return dup2(plan.input_fd, 0) >= 0;
}

[[noreturn]] void child_main(void* argument) {
  ChildPlan& plan = *static_cast<ChildPlan*>(argument);
  const LaunchRequest& request = *plan.request;
  if (setsid() < 0) give_up(plan, Step::kSession);
  if (plan.oom_score != nullptr) set_oom_score(plan.oom_score);
  if (!enter_limits(*plan.entrances)) give_up(plan, Step::kLimits);
  bind_self(*plan.binding);
  if (!take_input(plan)) give_up(plan, Step::kInput);
  if (plan.output_fd >= 0 && (dup2(plan.output_fd, 1) < 0 || dup2(plan.output_fd, 2) < 0)) {
    give_up(plan, Step::kOutput);
  }
  umask(request.umask);
  if (plan.mounts_fd >= 0) {
    enter_private_folders(plan);
  } else if (plan.folders != nullptr) {
    make_folders_private(plan);
  }
  if (geteuid() == 0 && !become_user(request.user)) give_up(plan, Step::kUser);
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) give_up(plan, Step::kUser);
  if (chdir(c_text(request.workdir)) != 0) give_up(plan, Step::kWorkdir);
  if (plan.folders == nullptr) open_outputs(plan);
  unblock_all_signals();
  execute(plan);
  give_up(plan, Step::kExecute);
}

std::vector<char*> pointers(const std::vector<std::string_view>& texts) {
  std::vector<char*> list;
  list.reserve(texts.size() + 1);
  for (const std::string_view text : texts) list.push_back(const_cast<char*>(text.data()));
  list.push_back(nullptr);
  return list;
}

const char* search_path_of(const std::vector<std::string_view>& environment) {
  for (const std::string_view entry : environment) {
    if (entry.starts_with("PATH=")) return entry.data() + 5;
  }
  return kDefaultSearchPath;
}

// A program that is there for everybody else must not be missing without a word.
std::string hint(const ChildPlan& plan) {
  const bool hidden = plan.folders != nullptr && is_missing(plan.error) &&
                      std::string_view(plan.arguments.front()).starts_with("/tmp/");
  return hidden ? " (a job's /tmp is its own: execution.private_tmp)" : "";
}

std::string describe(const ChildPlan& plan) {
  const LaunchRequest& request = *plan.request;
  const std::string why = std::string(": ") + strerror(plan.error);
  switch (plan.failed) {
    case Step::kSession:
      return "setsid" + why;
    case Step::kLimits:
      return "enter the groups that limit it" + why;
    case Step::kFolders:
      return "make /tmp and /dev/shm private" + why;
    case Step::kInput:
      return "take its input" + why;
    case Step::kUser:
      return "become user " + std::to_string(request.user.uid) + why;
    case Step::kWorkdir:
      return std::string("change to directory ") + request.workdir.data() + why;
    case Step::kOutput:
      return std::string("open output file ") + request.output.data() + why;
    case Step::kError:
      return std::string("open error file ") + request.error.data() + why;
    case Step::kExecute:
      return std::string("execute ") + plan.arguments.front() + why + hint(plan);
    case Step::kNone:
      break;
  }
  return {};
}

// Directory, output file and program are the job's own; the rest, and a host that has run out of
// something, is not its fault.
int exit_code_of(const ChildPlan& plan) {
  const bool is_its_own = plan.failed == Step::kWorkdir || plan.failed == Step::kOutput ||
                          plan.failed == Step::kError || plan.failed == Step::kExecute;
  if (!is_its_own) return 0;
  switch (plan.error) {
    case ENOMEM:
    case EAGAIN:
    case EMFILE:
    case ENFILE:
    case ENOSPC:
    case EIO:
      return 0;
    default:
      return plan.failed == Step::kExecute && is_missing(plan.error) ? 127 : 126;
  }
}

// What the child has sent, if it came so far; it is done with its end.
int take_mounts(int (&ends)[2]) {
  close(ends[1]);
  char buffer[16];
  const Packet packet = receive_packet(ends[0], buffer, sizeof buffer);
  close(ends[0]);
  return packet.fd;
}

}  // namespace

JobStart start_job(const JobStartOptions& options) {
  // Not initialised beyond the members: the path buffer is written before it is read.
  const std::unique_ptr<ChildPlan> plan(new ChildPlan);
  plan->request = options.request;
  plan->oom_score = options.oom_score;
  plan->output_fd = options.output_fd;
  plan->input_fd = options.input_fd;
  plan->binding = &options.confinement->binding();
  plan->entrances = &options.confinement->limits().entrances();
  plan->folders = options.confinement->folders();
  plan->mounts_fd = options.is_later ? options.confinement->mounts() : -1;
  plan->truncates = options.request->truncate_output && !options.is_later;
  const bool is_command = options.command.empty();
  plan->arguments = pointers(is_command ? options.request->command : options.command);
  plan->environment = pointers(options.request->environment);
  for (const std::string& entry : options.more_environment) {
    plan->environment.insert(plan->environment.end() - 1, const_cast<char*>(entry.c_str()));
  }
  plan->search_path = search_path_of(options.request->environment);
  alignas(16) char stack[kStackSize];

  JobStart result;
  int ends[2] = {-1, -1};
  const bool makes_mounts = plan->folders != nullptr && plan->mounts_fd < 0;
  if (makes_mounts && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    result.detail = std::string("make a socket: ") + strerror(errno);
    return result;
  }
  plan->mounts_socket = ends[1];
  result.pid =
      spawn_sharing_memory(child_main, plan.get(), {stack, sizeof stack}, options.cgroup_fd);
  const int spawn_error = errno;
  if (makes_mounts) result.mounts_fd = take_mounts(ends);
  if (result.pid < 0) {
    result.detail = std::string("start a process: ") + strerror(spawn_error);
    return result;
  }
  result.executed = plan->failed == Step::kNone;
  if (!result.executed) {
    result.exit_code = exit_code_of(*plan);
    result.detail = describe(*plan);
  }
  return result;
}

}  // namespace gpu_platform::node
