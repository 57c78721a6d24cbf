#include "node/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "node/small_file.h"
#include "node/syscalls.h"

namespace gpu_platform::node {

namespace {

std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

std::string_view take_field(std::string_view& line) {
  const std::size_t end = line.find(' ');
  const std::string_view field = line.substr(0, end);
  line.remove_prefix(end == std::string_view::npos ? line.size() : end + 1);
  return field;
}

bool is_octal(char c) {
  return c >= '0' && c <= '7';
}

// mountinfo writes blanks and such as \040.
std::string unescape(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size() && is_octal(text[i + 1]) && is_octal(text[i + 2]) &&
        is_octal(text[i + 3])) {
      plain.push_back(static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                                        (text[i + 3] - '0')));
      i += 3;
    } else {
      plain.push_back(text[i]);
    }
  }
  return plain;
}

std::vector<int> pids_in(int cgroup_fd) {
  std::vector<int> pids;
  const std::string text = read_small_file(cgroup_fd, "cgroup.procs");
  std::string_view rest = text;
  while (!rest.empty()) {
    int pid = 0;
    for (const char c : take_line(rest)) {
      if (c < '0' || c > '9') break;
      pid = pid * 10 + (c - '0');
    }
    if (pid > 0) pids.push_back(pid);
  }
  return pids;
}

bool contains(const std::vector<int>& pids, int pid) {
  for (const int p : pids) {
    if (p == pid) return true;
  }
  return false;
}

std::string error_text(std::string_view what, std::string_view path) {
  const int error = errno;
  return std::string(what) + " " + std::string(path) + ": " + strerror(error);
}

// Empty when a process can be born into a new cgroup below base, else why not.
std::string probe(const std::string& base) {
  const std::string path = base + "/probe";
  if (mkdir(path.c_str(), 0755) != 0 && errno != EEXIST) return error_text("mkdir", path);
  std::string why;
  const int fd = open(path.c_str(), O_DIRECTORY | O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    why = error_text("open", path);
  } else {
    const int pid = fork_into_cgroup(fd);
    if (pid == 0) _exit(0);
    if (pid < 0) {
      why = error_text("start a process in", path);
    } else {
      while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
      }
    }
    close(fd);
  }
  rmdir(path.c_str());
  return why;
}

// Accounting of peak memory needs the controller; a parent that does not pass it on is left as it
// is.
void enable_memory_controller(const std::string& base) {
  const std::string available = read_small_file(AT_FDCWD, (base + "/cgroup.controllers").c_str());
  if (available.find("memory") == std::string::npos) return;
  write_small_file(AT_FDCWD, (base + "/cgroup.subtree_control").c_str(), "+memory");
}

void move_self_into(const std::string& path) {
  if (mkdir(path.c_str(), 0755) != 0 && errno != EEXIST) return;
  write_small_file(AT_FDCWD, (path + "/cgroup.procs").c_str(), "0");
}

}  // namespace

std::optional<std::string> find_cgroup2_mount(std::string_view mountinfo) {
  while (!mountinfo.empty()) {
    std::string_view line = take_line(mountinfo);
    for (int skipped = 0; skipped < 4; ++skipped) take_field(line);
    const std::string_view mount_point = take_field(line);
    const std::size_t dash = line.find(" - ");
    if (dash == std::string_view::npos) continue;
    line.remove_prefix(dash + 3);
    if (take_field(line) == "cgroup2" && mount_point.starts_with('/')) return unescape(mount_point);
  }
  return std::nullopt;
}

std::optional<std::string> find_cgroup2_path(std::string_view proc_cgroup) {
  while (!proc_cgroup.empty()) {
    const std::string_view line = take_line(proc_cgroup);
    if (line.starts_with("0::/")) return std::string(line.substr(3));
  }
  return std::nullopt;
}

CgroupBase make_cgroup_base(std::string_view token) {
  const auto mount = find_cgroup2_mount(read_small_file(AT_FDCWD, "/proc/self/mountinfo"));
  if (!mount) return {{}, "no cgroup v2 tree is mounted"};
  const auto own = find_cgroup2_path(read_small_file(AT_FDCWD, "/proc/self/cgroup"));
  const std::string home = *mount + (own && *own != "/" ? *own : "");
  const std::string parent = geteuid() == 0 ? *mount : home;
  const std::string base = parent + "/gpu-platform-" + std::string(token);
  if (mkdir(base.c_str(), 0755) != 0 && errno != EEXIST) return {{}, error_text("mkdir", base)};
  if (std::string why = probe(base); !why.empty()) {
    rmdir(base.c_str());
    return {{}, std::move(why)};
  }
  move_self_into(base + "/node");
  enable_memory_controller(base);
  return {base, {}, home};
}

void leave_cgroup_base(const CgroupBase& base) {
  if (base.path.empty()) return;
  write_small_file(AT_FDCWD, (base.home + "/cgroup.procs").c_str(), "0");
  rmdir((base.path + "/node").c_str());
  rmdir(base.path.c_str());
}

bool cgroup_is_empty(int cgroup_fd) {
  const std::string events = read_small_file(cgroup_fd, "cgroup.events");
  return number_after(events, "populated") == 0;
}

void signal_cgroup(int cgroup_fd, int signal) {
  struct Target {
    int pid;
    int handle;
  };
  std::vector<Target> targets;
  for (const int pid : pids_in(cgroup_fd)) {
    const int handle = open_pidfd(pid);
    if (handle >= 0) targets.push_back({pid, handle});
  }
  // A pid may have been reused before its handle was opened; one still listed now is in here, and
  // the handle is of that process or of a dead one.
  const std::vector<int> still = pids_in(cgroup_fd);
  for (const Target& target : targets) {
    if (contains(still, target.pid)) signal_pidfd(target.handle, signal);
    close(target.handle);
  }
}

void kill_cgroup(int cgroup_fd) {
  if (write_small_file(cgroup_fd, "cgroup.kill", "1")) return;
  // Before Linux 5.14. Repeated by the caller until the cgroup is empty.
  signal_cgroup(cgroup_fd, SIGKILL);
}

}  // namespace gpu_platform::node
