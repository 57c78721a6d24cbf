#include "node/launcher/attempts_on_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <optional>
#include <string_view>

#include "node/cgroup.h"
#include "node/folders/remove_tree.h"
#include "node/process_tree.h"
#include "node/protocol.h"
#include "node/supervisor/session_socket.h"
#include "node/syscalls.h"
#include "os/small_file.h"

namespace gpu_platform::node {

namespace {

bool is_cgroup(int fd) {
  struct statfs about{};
  return fstatfs(fd, &about) == 0 && about.f_type == CGROUP2_SUPER_MAGIC;
}

int give_up(int fd, int error) {
  if (fd >= 0) close(fd);
  errno = error;
  return -1;
}

// It ends its container first, which a SIGKILL would leave running.
bool is_container_client(int pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/comm";
  return os::read_small_file(AT_FDCWD, path.c_str()).starts_with("gpu-platform-co");
}

}  // namespace

OpenRecord AttemptsOnDisk::look_at(model::AttemptId attempt) const {
  OpenRecord found;
  const int fd = open_below(folders_.attempts, attempt_name(attempt).c_str(), O_RDONLY);
  if (fd < 0) return found;
  std::string file(kRecordSize, '\0');
  const ssize_t got = pread(fd, file.data(), file.size(), 0);
  if (got == static_cast<ssize_t>(kRecordSize)) found.record = decode_record(file);
  if (found.record.beginning && found.record.beginning->attempt != attempt) found.record = {};
  found.holder = flock(fd, LOCK_SH | LOCK_NB) == 0 ? Holder::kNobody : Holder::kSupervisor;
  close(fd);
  return found;
}

bool AttemptsOnDisk::is_of_this_boot(const Record& record) const {
  return record.beginning && record.beginning->boot_id == boot_id_;
}

// The lock says that it lives, but any reader of the record may hold a lock on it too. So the start
// time proves that the pid still means the supervisor.
bool AttemptsOnDisk::signal_supervisor(model::AttemptId attempt, int signal,
                                       std::uint64_t bits) const {
  const OpenRecord found = look_at(attempt);
  if (found.holder != Holder::kSupervisor || !is_of_this_boot(found.record)) return false;
  const int pid = static_cast<int>(found.record.beginning->supervisor_pid);
  const int pidfd = open_pidfd(pid);
  if (pidfd < 0) return false;
  const std::uint64_t ticks = found.record.beginning->supervisor_ticks;
  const bool is_it = ticks != 0 && start_ticks_of(pid) == ticks;
  const bool sent = is_it && queue_signal(pidfd, signal, bits) == 0;
  if (sent) signal_pidfd(pidfd, SIGCONT);  // one that was stopped could not act
  close(pidfd);
  return sent;
}

// Opens the place where jobs' cgroups were when the attempt began, which may be another one than
// now. It is taken from the record if it is such a place.
int AttemptsOnDisk::open_parent_of_cgroup(model::AttemptId attempt, const Record& record) const {
  if (!record.beginning) {
    return base_fd_ < 0 ? give_up(-1, ENOENT) : fcntl(base_fd_, F_DUPFD_CLOEXEC, 3);
  }
  const std::string_view path = record.beginning->cgroup;
  const std::string ending = "/" + base_name_ + "/" + attempt_name(attempt);
  const auto mount = find_cgroup2_mount(os::read_small_file(AT_FDCWD, "/proc/self/mountinfo"));
  if (!mount || !path.starts_with(*mount + "/") || !path.ends_with(ending)) {
    return give_up(-1, EINVAL);
  }
  const std::string_view parent = path.substr(0, path.rfind('/'));
  const int top = open(mount->c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (top < 0) return -1;
  const std::string below(parent.substr(mount->size() + 1));
  const int fd = open_below(top, below.c_str(), O_RDONLY | O_DIRECTORY);
  const int error = errno;
  close(top);
  if (fd < 0) return give_up(-1, error);
  return is_cgroup(fd) ? fd : give_up(fd, EINVAL);
}

int AttemptsOnDisk::open_cgroup(model::AttemptId attempt, const Record& record) const {
  const int parent = open_parent_of_cgroup(attempt, record);
  if (parent < 0) return -1;
  const int fd = open_below(parent, attempt_name(attempt).c_str(), O_RDONLY | O_DIRECTORY);
  const int error = errno;
  close(parent);
  errno = error;
  return fd;
}

bool AttemptsOnDisk::kill_tree(model::AttemptId attempt) const {
  const Record record = look_at(attempt).record;
  const bool has_none = record.beginning ? record.beginning->cgroup.empty() : base_fd_ < 0;
  if (has_none) {
    if (!record.started || !is_of_this_boot(record)) return true;
    const auto pid = static_cast<int>(record.started->pid);
    const bool ends_container = has_container_left(attempt) && is_container_client(pid);
    return end_process_group(pid, record.started->start_ticks, ends_container ? SIGUSR1 : SIGKILL);
  }
  const int parent = open_parent_of_cgroup(attempt, record);
  if (parent < 0) return errno == ENOENT;
  const std::string name = attempt_name(attempt);
  const int fd = open_below(parent, name.c_str(), O_RDONLY | O_DIRECTORY);
  bool is_gone = fd < 0 && errno == ENOENT;
  if (fd >= 0) {
    kill_cgroup(fd);
    remove_cgroups_below(fd);
    is_gone = cgroup_is_empty(fd) &&
              (unlinkat(parent, name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT);
    close(fd);
  }
  close(parent);
  return is_gone;
}

void AttemptsOnDisk::sweep(model::AttemptId attempt) const {
  if (look_at(attempt).holder == Holder::kSupervisor) return;
  remove_leftovers(confinement_, attempt_name(attempt));
}

void AttemptsOnDisk::remove_output(model::JobId job) const {
  const OutputPlace place = output_place(job);
  const int fd = open_below(folders_.output, place.thousand.c_str(), O_RDONLY | O_DIRECTORY);
  if (fd < 0) return;
  remove_tree(fd, place.job.c_str());
  close(fd);
}

bool AttemptsOnDisk::has_container_left(model::AttemptId attempt) const {
  const std::string name = container_report_name(attempt);
  return faccessat(folders_.attempts, name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

bool AttemptsOnDisk::forget(model::AttemptId attempt) const {
  const std::string name = attempt_name(attempt);
  if (base_fd_ >= 0 && unlinkat(base_fd_, name.c_str(), AT_REMOVEDIR) != 0 && errno == EBUSY) {
    return false;
  }
  sweep(attempt);
  remove_session_socket(folders_.run, attempt);  // of a supervisor that was killed
  unlinkat(folders_.attempts, container_report_name(attempt).c_str(), 0);  // of such a supervisor
  unlinkat(folders_.attempts, owed_epilog_name(attempt).c_str(), 0);       // of such a supervisor
  unlinkat(folders_.attempts, name.c_str(), 0);
  return true;
}

}  // namespace gpu_platform::node
