#include "node/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include "node/mount_table.h"
#include "node/syscalls.h"
#include "os/clock.h"
#include "os/small_file.h"

namespace gpu_platform::node {

namespace {

// Calls visit(name) with each cgroup directly in it.
template <class Visit>
void for_each_child(int cgroup_fd, const Visit& visit) {
  const int again = openat(cgroup_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const folder = again < 0 ? nullptr : fdopendir(again);
  if (folder == nullptr) {
    if (again >= 0) close(again);
    return;
  }
  while (const dirent* entry = readdir(folder)) {
    if (entry->d_type == DT_DIR && entry->d_name[0] != '.') visit(entry->d_name);
  }
  closedir(folder);
}

int open_cgroup(int parent, const char* name) {
  return openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

// Beside the two of every folder the kernel counts one link for each cgroup in it.
bool has_children(int cgroup_fd) {
  struct stat about{};
  return fstat(cgroup_fd, &about) == 0 && about.st_nlink > 2;
}

void add_pids(int cgroup_fd, std::vector<int>& pids) {
  const std::string text = os::read_small_file(cgroup_fd, "cgroup.procs");
  std::string_view rest = text;
  while (!rest.empty()) {
    int pid = 0;
    for (const char c : take_line(rest)) {
      if (c < '0' || c > '9') break;
      pid = pid * 10 + (c - '0');
    }
    if (pid > 0) pids.push_back(pid);
  }
  if (!has_children(cgroup_fd)) return;
  for_each_child(cgroup_fd, [&](const char* name) {
    const int child = open_cgroup(cgroup_fd, name);
    if (child < 0) return;
    add_pids(child, pids);
    close(child);
  });
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

// Beside the two of every folder the kernel counts one link for each cgroup in it: more than
// "node".
bool holds_jobs(const std::string& base) {
  struct stat about{};
  return stat(base.c_str(), &about) != 0 || about.st_nlink > 3;
}

// A supervisor without its job ends within moments; one that does not is left behind.
void wait_until_empty(const std::string& cgroup) {
  constexpr int kTimeoutMs = 300;
  const int events = open((cgroup + "/cgroup.events").c_str(), O_RDONLY | O_CLOEXEC);
  char text[256];
  pollfd changed{events, POLLPRI, 0};
  // Each reading arms the next wake-up.
  while (events >= 0) {
    const ssize_t got = pread(events, text, sizeof text, 0);
    if (got <= 0 || os::number_after({text, static_cast<std::size_t>(got)}, "populated") == 0)
      break;
    if (poll(&changed, 1, kTimeoutMs) <= 0) break;
  }
  if (events >= 0) close(events);
}

void move_self_into(const std::string& path) {
  if (mkdir(path.c_str(), 0755) != 0 && errno != EEXIST) return;
  os::write_small_file(AT_FDCWD, (path + "/cgroup.procs").c_str(), "0");
}

}  // namespace

std::optional<std::string> find_cgroup2_mount(std::string_view mountinfo) {
  while (std::optional<Mount> mount = take_mount(mountinfo)) {
    if (mount->type == "cgroup2") return std::move(mount->point);
  }
  return std::nullopt;
}

std::vector<std::string> find_cgroup1_mounts(std::string_view mountinfo) {
  std::vector<std::string> points;
  while (std::optional<Mount> mount = take_mount(mountinfo)) {
    if (mount->type == "cgroup") points.push_back(std::move(mount->point));
  }
  return points;
}

namespace {

// In each older tree.
std::vector<std::string> engine_groups(const std::string& cgroup) {
  const std::string mountinfo = os::read_small_file(AT_FDCWD, "/proc/self/mountinfo");
  const auto mount = find_cgroup2_mount(mountinfo);
  if (!mount || cgroup.size() <= mount->size() || !cgroup.starts_with(*mount)) return {};
  const std::string name = cgroup.substr(*mount == "/" ? 0 : mount->size());
  std::vector<std::string> groups = find_cgroup1_mounts(mountinfo);
  for (std::string& group : groups) group += name;
  return groups;
}

}  // namespace

namespace {

// Until all processes in it have ended, or the time is over.
void wait_for_processes(int cgroup_fd, std::int64_t until_ms) {
  for (const int pid : pids_in_cgroup(cgroup_fd)) {
    pollfd ended{open_pidfd(pid), POLLIN, 0};
    if (ended.fd < 0) continue;
    const auto left = std::max<std::int64_t>(until_ms - os::boot_ms(), 0);
    poll(&ended, 1, static_cast<int>(left));
    close(ended.fd);
  }
}

}  // namespace

void remove_engine_groups(const std::string& cgroup, int timeout_ms) {
  const std::int64_t until_ms = os::boot_ms() + timeout_ms;
  for (const std::string& group : engine_groups(cgroup)) {
    const int fd = open_cgroup(AT_FDCWD, group.c_str());
    if (fd < 0) continue;
    if (timeout_ms > 0) wait_for_processes(fd, until_ms);
    remove_cgroups_below(fd);
    close(fd);
    rmdir(group.c_str());
  }
}

std::vector<std::string> engine_groups_below(const std::string& base) {
  std::vector<std::string> names;
  for (const std::string& group : engine_groups(base)) {
    const int fd = open_cgroup(AT_FDCWD, group.c_str());
    if (fd < 0) continue;
    for_each_child(fd, [&](const char* name) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.emplace_back(name);
    });
    close(fd);
  }
  return names;
}

std::optional<std::uint64_t> peak_of_engine_groups(const std::string& cgroup) {
  for (const std::string& group : engine_groups(cgroup)) {
    const std::string file = group + "/memory.max_usage_in_bytes";
    const std::string text = os::read_small_file(AT_FDCWD, file.c_str());
    std::uint64_t peak = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), peak);
    if (error == std::errc()) return peak;
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

std::optional<std::string> find_systemd_top(std::string_view init_cgroup) {
  constexpr std::string_view kOwn = "/init.scope";
  auto path = find_cgroup2_path(init_cgroup);
  if (!path || !path->ends_with(kOwn)) return std::nullopt;
  path->resize(path->size() - kOwn.size());
  return path;
}

CgroupBase make_cgroup_base(std::string_view token, const std::string& parent) {
  const auto mount = find_cgroup2_mount(os::read_small_file(AT_FDCWD, "/proc/self/mountinfo"));
  if (!mount) return {{}, "no cgroup v2 tree is mounted"};
  const auto own = find_cgroup2_path(os::read_small_file(AT_FDCWD, "/proc/self/cgroup"));
  const std::string home = *mount + (own && *own != "/" ? *own : "");
  const std::string own_choice = geteuid() == 0 ? *mount : home;
  const std::string base =
      (parent.empty() ? own_choice : parent) + "/gpu-platform-" + std::string(token);
  if (mkdir(base.c_str(), 0755) != 0 && errno != EEXIST) return {{}, error_text("mkdir", base)};
  if (std::string why = probe(base); !why.empty()) {
    rmdir(base.c_str());
    return {{}, std::move(why)};
  }
  move_self_into(base + "/node");
  return {base, {}, home};
}

bool leave_cgroup_base(const CgroupBase& base) {
  if (base.path.empty()) return true;
  os::write_small_file(AT_FDCWD, (base.home + "/cgroup.procs").c_str(), "0");
  const std::string node = base.path + "/node";
  if (rmdir(node.c_str()) != 0 && errno == EBUSY && !holds_jobs(base.path)) {
    wait_until_empty(node);
    rmdir(node.c_str());
  }
  return rmdir(base.path.c_str()) == 0 || errno == ENOENT;
}

namespace {

// Sends the signal to those processes of the cgroup that `is_meant` says.
template <class IsMeant>
void signal_those(int cgroup_fd, int signal, const IsMeant& is_meant) {
  struct Target {
    int pid;
    int handle;
  };
  std::vector<Target> targets;
  for (const int pid : pids_in_cgroup(cgroup_fd)) {
    const int handle = open_pidfd(pid);
    if (handle >= 0) targets.push_back({pid, handle});
  }
  // A pid may have been reused before its handle was opened; one still listed now is in here, and
  // the handle is of that process or of a dead one.
  const std::vector<int> still = pids_in_cgroup(cgroup_fd);
  for (const Target& target : targets) {
    const bool is_here = contains(still, target.pid);
    if (is_here && is_meant(target.pid)) signal_pidfd(target.handle, signal);
    close(target.handle);
  }
}

}  // namespace

std::vector<int> pids_in_cgroup(int cgroup_fd) {
  std::vector<int> pids;
  add_pids(cgroup_fd, pids);
  return pids;
}

bool cgroup_is_empty(int cgroup_fd) {
  const std::string events = os::read_small_file(cgroup_fd, "cgroup.events");
  return os::number_after(events, "populated") == 0;
}

void signal_cgroup(int cgroup_fd, int signal) {
  signal_those(cgroup_fd, signal, [](int) { return true; });
}

void signal_process_group(int cgroup_fd, int group, int signal) {
  signal_those(cgroup_fd, signal, [group](int pid) { return getpgid(pid) == group; });
}

void signal_contained(int cgroup_fd, int signal) {
  struct stat ours{};
  if (stat("/proc/self/ns/pid", &ours) != 0) return;
  signal_those(cgroup_fd, signal, [&ours](int pid) {
    struct stat theirs{};
    const std::string path = "/proc/" + std::to_string(pid) + "/ns/pid";
    return stat(path.c_str(), &theirs) == 0 && theirs.st_ino != ours.st_ino;
  });
}

void kill_cgroup(int cgroup_fd) {
  if (os::write_small_file(cgroup_fd, "cgroup.kill", "1")) return;
  // Linux before 5.14 has no cgroup.kill. The caller repeats this until the cgroup is empty.
  signal_cgroup(cgroup_fd, SIGKILL);
}

void remove_cgroups_below(int cgroup_fd) {
  if (!has_children(cgroup_fd)) return;
  for_each_child(cgroup_fd, [&](const char* name) {
    const int child = open_cgroup(cgroup_fd, name);
    if (child < 0) return;
    remove_cgroups_below(child);
    close(child);
    unlinkat(cgroup_fd, name, AT_REMOVEDIR);
  });
}

void take_controllers_back(int cgroup_fd) {
  constexpr const char* kPassedOn = "cgroup.subtree_control";
  remove_cgroups_below(cgroup_fd);
  const std::string names = os::read_small_file(cgroup_fd, kPassedOn);
  std::string orders;
  bool is_at_name = true;
  for (const char c : names) {
    const bool is_of_name = c != ' ' && c != '\n';
    if (is_of_name && is_at_name) orders += orders.empty() ? "-" : " -";
    if (is_of_name) orders += c;
    is_at_name = !is_of_name;
  }
  if (!orders.empty()) os::write_small_file(cgroup_fd, kPassedOn, orders);
}

}  // namespace gpu_platform::node
