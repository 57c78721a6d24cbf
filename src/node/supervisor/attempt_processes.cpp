#include "node/supervisor/attempt_processes.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node/cgroup.h"
#include "node/cgroup_freezer.h"
#include "node/process_tree.h"
#include "os/small_file.h"

namespace gpu_platform::node {

std::string AttemptProcesses::make() {
  if (base_fd_ < 0) return {};
  int made = mkdirat(base_fd_, name_.c_str(), 0755);
  if (made != 0 && errno == EEXIST) {
    // Left by an attempt to start that came to nothing; one with processes in it cannot be removed.
    unlinkat(base_fd_, name_.c_str(), AT_REMOVEDIR);
    made = mkdirat(base_fd_, name_.c_str(), 0755);
  }
  if (made != 0) return std::string("make its cgroup: ") + strerror(errno);
  is_made_ = true;
  cgroup_ = openat(base_fd_, name_.c_str(), O_DIRECTORY | O_RDONLY | O_CLOEXEC);
  return cgroup_ >= 0 ? "" : std::string("open its cgroup: ") + strerror(errno);
}

void AttemptProcesses::remove() {
  if (is_made_) unlinkat(base_fd_, name_.c_str(), AT_REMOVEDIR);
}

void AttemptProcesses::signal(int signal) {
  if (cgroup_ >= 0) {
    signal_cgroup(cgroup_, signal);
  } else {
    signal_descendants(signal);
  }
}

void AttemptProcesses::signal_contained(int signal) {
  if (cgroup_ >= 0) node::signal_contained(cgroup_, signal);
}

void AttemptProcesses::give_room() {
  if (cgroup_ >= 0) take_controllers_back(cgroup_);
}

void AttemptProcesses::kill() {
  if (cgroup_ >= 0) {
    kill_cgroup(cgroup_);
  } else {
    signal_descendants(SIGKILL);
  }
}

void AttemptProcesses::wake() const {
  if (cgroup_ >= 0) thaw_cgroup(cgroup_);
}

void AttemptProcesses::hold_awake() const {
  if (cgroup_ >= 0) node::hold_awake(cgroup_);
}

void AttemptProcesses::let_go() const {
  if (cgroup_ >= 0) node::let_go(cgroup_);
}

bool AttemptProcesses::stands_still() {
  return open_events() && look_at_cgroup(cgroup_, events_).stands_still;
}

bool AttemptProcesses::open_events() {
  if (events_ < 0 && cgroup_ >= 0) {
    events_ = openat(cgroup_, "cgroup.events", O_RDONLY | O_CLOEXEC);
  }
  return events_ >= 0;
}

std::optional<AttemptProcesses::Exited> AttemptProcesses::next_exited() {
  Exited exited;
  exited.pid = wait4(-1, &exited.status, WNOHANG, &exited.usage);
  has_no_children_ = exited.pid < 0 && errno == ECHILD;
  if (exited.pid <= 0) return std::nullopt;
  return exited;
}

bool AttemptProcesses::are_gone(Cgroup what) const {
  if (cgroup_ < 0) return has_no_children_;
  if (what == Cgroup::kKeep) return cgroup_is_empty(cgroup_);
  remove_cgroups_below(cgroup_);
  return unlinkat(base_fd_, name_.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT;
}

bool AttemptProcesses::watch(Cgroup what) {
  char text[256];
  // Reading arms the next wake-up.
  const ssize_t got = open_events() ? pread(events_, text, sizeof text, 0) : -1;
  if (got <= 0) return true;
  if (os::number_after({text, static_cast<std::size_t>(got)}, "populated") != 0) return true;
  return !are_gone(what);
}

base::Duration AttemptProcesses::cpu_time() const {
  if (cgroup_ >= 0) {
    const long long us = os::number_after(os::read_small_file(cgroup_, "cpu.stat"), "usage_usec");
    if (us >= 0) return base::microseconds(us);
  }
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  return base::seconds(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         base::microseconds(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

}  // namespace gpu_platform::node
