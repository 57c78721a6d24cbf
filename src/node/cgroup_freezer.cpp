#include "node/cgroup_freezer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <charconv>
#include <string>
#include <string_view>

#include "os/small_file.h"

namespace gpu_platform::node {

namespace {

constexpr const char* kFreeze = "cgroup.freeze";
constexpr std::string_view kHold = "user.gpu_platform.awake.";

std::string own_hold() {
  return std::string(kHold) + std::to_string(getpid());
}

bool is_alive(std::string_view pid_text) {
  int pid = 0;
  const auto [end, error] =
      std::from_chars(pid_text.data(), pid_text.data() + pid_text.size(), pid);
  if (error != std::errc() || pid <= 0) return false;
  return kill(pid, 0) == 0 || errno == EPERM;
}

}  // namespace

bool freeze_cgroup(int cgroup_fd) {
  return os::write_small_file(cgroup_fd, kFreeze, "1");
}

bool thaw_cgroup(int cgroup_fd) {
  return os::write_small_file(cgroup_fd, kFreeze, "0");
}

CgroupBody look_at_cgroup(int cgroup_fd, int events_fd) {
  CgroupBody body;
  char text[256];
  const ssize_t got = pread(events_fd, text, sizeof text, 0);
  const std::string wanted = os::read_small_file(cgroup_fd, kFreeze);
  if (got <= 0 || wanted.empty()) return body;
  const std::string_view events(text, static_cast<std::size_t>(got));
  body.is_there = true;
  body.is_to_stand_still = wanted.front() == '1';
  body.stands_still = os::number_after(events, "frozen") == 1;
  body.is_empty = os::number_after(events, "populated") == 0;
  return body;
}

void hold_awake(int cgroup_fd) {
  fsetxattr(cgroup_fd, own_hold().c_str(), "1", 1, 0);
  thaw_cgroup(cgroup_fd);
}

void let_go(int cgroup_fd) {
  fremovexattr(cgroup_fd, own_hold().c_str());
}

bool is_held_awake(int cgroup_fd) {
  char names[4096];
  const ssize_t size = flistxattr(cgroup_fd, names, sizeof names);
  if (size < 0) return errno == ERANGE;  // more marks than any set of holders has
  std::string_view rest(names, static_cast<std::size_t>(size));
  bool is_held = false;
  while (!rest.empty()) {
    const std::string name(rest.substr(0, rest.find('\0')));
    rest.remove_prefix(name.size() + 1);
    if (!name.starts_with(kHold)) continue;
    if (is_alive(std::string_view(name).substr(kHold.size()))) {
      is_held = true;
    } else {
      fremovexattr(cgroup_fd, name.c_str());
    }
  }
  return is_held;
}

int open_freezer(int cgroup_fd) {
  return openat(cgroup_fd, kFreeze, O_WRONLY | O_CLOEXEC);
}

void thaw_by(int freezer) {
  [[maybe_unused]] const ssize_t wrote = pwrite(freezer, "0", 1, 0);
}

void thaw_cgroups_below(int cgroup_fd) {
  const int again = openat(cgroup_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const folder = again < 0 ? nullptr : fdopendir(again);
  if (folder == nullptr) {
    if (again >= 0) close(again);
    return;
  }
  while (const dirent* entry = readdir(folder)) {
    if (entry->d_type != DT_DIR || entry->d_name[0] == '.') continue;
    const std::string file = std::string(entry->d_name) + "/" + kFreeze;
    os::write_small_file(cgroup_fd, file.c_str(), "0");
  }
  closedir(folder);
}

}  // namespace gpu_platform::node
