#include "node/supervisor/job_child.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "node/raw_call.h"
#include "node/seccomp/syscall_filter.h"
#include "node/session_keyring.h"
#include "node/supervisor/users_file.h"
#include "os/named_file.h"

namespace gpu_platform::node {

namespace {

[[noreturn]] void give_up(JobChild& child, int error, const char* why = nullptr) {
  child.report->error = error < 0 ? -error : error;
  if (why != nullptr) child.report->set_why(why);
  child.report->has_failed = true;
  raw_exit(127);
}

void at(JobChild& child, StartStep step) {
  child.report->step.store(static_cast<std::uint8_t>(step), std::memory_order_relaxed);
}

void check(JobChild& child, long result) {
  if (result < 0) give_up(child, static_cast<int>(result));
}

// Texts of a request end with a NUL of their own.
const char* c_text(std::string_view text) {
  return text.data();
}

void set_oom_score(const char* score) {
  const int fd = raw_open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  // Best effort: a job that keeps the protection of its supervisor is a smaller evil than no job.
  raw_write_text(fd, score, strlen(score));
  raw_close(fd);
}

void enter_limits(JobChild& child) {
  at(child, StartStep::kLimits);
  for (const int fd : *child.entrances) check(child, raw_call(SYS_write, fd, "0", 1));
}

// The terminal becomes the controlling terminal of the session that we lead.
void take_streams(JobChild& child) {
  at(child, StartStep::kInput);
  if (child.input_fd >= 0) {
    if (child.request->terminal) check(child, raw_call(SYS_ioctl, child.input_fd, TIOCSCTTY, 0));
    check(child, raw_keep_as(child.input_fd, 0));
  }
  if (child.output_fd < 0) return;
  at(child, StartStep::kOutput);
  check(child, raw_keep_as(child.output_fd, 1));
  check(child, raw_keep_as(child.output_fd, 2));
}

void open_output(JobChild& child, StartStep step, std::string_view path, bool is_error_only) {
  at(child, step);
  const UsersFile file = open_users_file(c_text(path), child.truncates);
  if (file.fd < 0) give_up(child, file.error, file.why);
  if (!is_error_only) check(child, raw_keep_as(file.fd, 1));
  check(child, raw_keep_as(file.fd, 2));
}

void open_outputs(JobChild& child) {
  const LaunchRequest& request = *child.request;
  if (child.output_fd < 0) open_output(child, StartStep::kOutput, request.output, false);
  if (request.error.size() > 1) open_output(child, StartStep::kError, request.error, true);
}

void go_to_workdir(JobChild& child) {
  at(child, StartStep::kWorkdir);
  if (os::change_to_named_folder(c_text(child.request->workdir)) != 0) give_up(child, errno);
}

// Without root's rights it is the job's user already.
void borrow_user(JobChild& child) {
  at(child, StartStep::kUser);
  if (child.switches_user && !child.user.borrow()) give_up(child, EPERM);
}

void return_user(JobChild& child) {
  at(child, StartStep::kUser);
  if (child.switches_user && !UserSwitch::give_back()) give_up(child, EPERM);
}

void send_descriptor(int socket, int fd) {
  char word = 'm';
  iovec data{&word, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message;
  memset(&message, 0, sizeof message);
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* const c = CMSG_FIRSTHDR(&message);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(c), &fd, sizeof fd);
  raw_call(SYS_sendmsg, socket, &message, MSG_NOSIGNAL);
}

// A process that has ended has no mounts to be found by any more, however soon one looks.
void hand_back_mounts(const JobChild& child) {
  const int mounts = raw_open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
  if (mounts < 0) return;
  send_descriptor(child.parent_socket, mounts);
  raw_close(mounts);
}

// Directory and output files are those that the user named, from before /tmp becomes the job's own.
void make_folders_private(JobChild& child) {
  at(child, StartStep::kFolders);
  check(child, enter_mount_namespace());
  borrow_user(child);
  go_to_workdir(child);
  open_outputs(child);
  int workdir = -1;
  if (!child.folders->workdir.empty()) {
    at(child, StartStep::kWorkdir);
    workdir = raw_open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    check(child, workdir);
  }
  return_user(child);
  at(child, StartStep::kFolders);
  raw_call(SYS_umask, 022);  // of folders that lead to the working directory
  check(child, replace_folders(*child.folders, workdir));
  hand_back_mounts(child);
  raw_call(SYS_umask, child.request->umask);
}

// As the first process, but into the folders that were made for it.
void enter_private_folders(JobChild& child) {
  borrow_user(child);
  open_outputs(child);
  return_user(child);
  at(child, StartStep::kFolders);
  check(child, raw_call(SYS_setns, child.mounts_fd, CLONE_NEWNS));
}

void become_user(JobChild& child) {
  at(child, StartStep::kUser);
  if (const int error = join_new_session_keyring(); error != 0) {
    give_up(child, error, "make a session keyring");
  }
  if (child.switches_user) {
    const SwitchFailure failure = child.user.become();
    if (failure.what != nullptr) give_up(child, failure.error, failure.what);
  }
  check(child, raw_call(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
}

// Below a /tmp or /dev/shm of the job's own nothing is there yet, so the folder that the job was
// told to use for temporary files is made, as its user. If that fails, the job's programs say
// so.
void make_temporary_folder(JobChild& child) {
  constexpr std::string_view kName = "TMPDIR=";
  for (const char* entry : child.environment) {
    if (entry == nullptr || strncmp(entry, kName.data(), kName.size()) != 0) continue;
    const std::string_view path(entry + kName.size());
    const bool is_hidden = path.starts_with("/tmp/") || path.starts_with("/dev/shm/");
    if (!is_hidden || path.size() >= JobChild::kMaxPath) return;
    for (std::size_t end = 1; end != std::string_view::npos && end < path.size();) {
      end = path.find('/', end + 1);
      const std::size_t size = end == std::string_view::npos ? path.size() : end;
      memcpy(child.path, path.data(), size);
      child.path[size] = '\0';
      raw_call(SYS_mkdirat, AT_FDCWD, &child.path[0], 0700);
    }
    return;
  }
}

bool is_missing(long error) {
  return error == -ENOENT || error == -ENOTDIR;
}

// Does what execvpe does, without its detour through a shell. Returns only on failure: the most
// telling one.
int execute(JobChild& child) {
  char* const program = child.arguments.front();
  char* const* const arguments = child.arguments.data();
  char* const* const environment = child.environment.data();
  if (strchr(program, '/') != nullptr) {
    return static_cast<int>(raw_call(SYS_execve, program, arguments, environment));
  }
  const std::size_t program_size = strlen(program) + 1;
  long verdict = -ENOENT;
  for (const char* entry = child.search_path; entry != nullptr;) {
    const char* const end = strchr(entry, ':');
    const std::size_t size = end == nullptr ? strlen(entry) : static_cast<std::size_t>(end - entry);
    if (size + 1 + program_size <= JobChild::kMaxPath) {
      memcpy(child.path, entry, size);
      if (size > 0) child.path[size] = '/';  // an empty entry is the current directory
      memcpy(child.path + size + (size > 0 ? 1 : 0), program, program_size);
      const long error = raw_call(SYS_execve, &child.path[0], arguments, environment);
      if (!is_missing(error)) verdict = error;
      if (!is_missing(error) && error != -EACCES) break;
    }
    entry = end == nullptr ? nullptr : end + 1;
  }
  return static_cast<int>(verdict);
}

void unblock_all_signals() {
  const std::uint64_t none = 0;  // as the kernel has them
  raw_call(SYS_rt_sigprocmask, SIG_SETMASK, &none, nullptr, sizeof none);
}

// It keeps its supervisor's user. Only the files that the user named are opened as the user.
[[noreturn]] void run_container_client(JobChild& child) {
  take_streams(child);
  raw_call(SYS_umask, child.request->umask);
  borrow_user(child);
  open_outputs(child);
  return_user(child);
  raw_call(SYS_umask, 077);
  at(child, StartStep::kExecute);
  check(child, raw_keep_as(child.container_request_fd, 3));
  check(child, raw_keep_as(child.container_report_fd, 4));
  check(child, raw_call(SYS_chdir, "/"));
  unblock_all_signals();
  give_up(child, execute(child));
}

}  // namespace

void run_job_child(JobChild& child) {
  check(child, raw_call(SYS_setsid));
  if (child.container_request_fd >= 0) run_container_client(child);
  if (child.oom_score != nullptr) set_oom_score(child.oom_score);
  enter_limits(child);
  bind_self(*child.binding);
  take_streams(child);
  raw_call(SYS_umask, child.request->umask);
  if (child.mounts_fd >= 0) {
    enter_private_folders(child);
  } else if (child.folders != nullptr) {
    make_folders_private(child);
  }
  become_user(child);
  if (child.folders != nullptr) make_temporary_folder(child);
  if (child.filters_syscalls) {
    at(child, StartStep::kSyscalls);
    check(child, install_syscall_filter());
  }
  go_to_workdir(child);
  if (child.folders == nullptr) open_outputs(child);
  at(child, StartStep::kExecute);
  unblock_all_signals();
  give_up(child, execute(child));
}

}  // namespace gpu_platform::node
