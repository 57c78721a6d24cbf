#include "node/mps/mps_places.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>

#include "node/cgroup.h"
#include "node/folders/node_folders.h"
#include "node/folders/remove_tree.h"
#include "os/clock.h"

namespace gpu_platform::node {

namespace {

constexpr std::string_view kCgroupPrefix = "mps-";
constexpr int kPlaceFolder = O_RDONLY | O_DIRECTORY;
constexpr int kRemovalMs = 500;
constexpr int kMaxMounts = 16;  // one above the other

std::string place_failed(const std::string& what) {
  return what + ": " + strerror(errno);
}

std::string cgroup_name(const std::string& name) {
  return std::string(kCgroupPrefix) + name;
}

bool belongs_to(int folder, std::uint32_t uid) {
  struct stat about{};
  return folder >= 0 && fstat(folder, &about) == 0 && about.st_uid == uid;
}

// Opens a folder of ours that every user may go through; it is made where it is missing.
int open_passage(int parent, const char* name) {
  if (mkdirat(parent, name, 0755) != 0 && errno != EEXIST) return -1;
  const int folder = open_below(parent, name, kPlaceFolder);
  if (folder < 0) return -1;
  if (belongs_to(folder, geteuid()) && fchmod(folder, 0755) == 0) return folder;
  close(folder);
  errno = EPERM;
  return -1;
}

void add_folders(int parent, std::string_view prefix, std::set<std::string>& names) {
  const int copy = parent < 0 ? -1 : openat(parent, ".", kPlaceFolder | O_CLOEXEC);
  DIR* const folder = copy < 0 ? nullptr : fdopendir(copy);
  while (const dirent* entry = folder == nullptr ? nullptr : readdir(folder)) {
    const std::string_view name = entry->d_name;
    if (entry->d_type != DT_DIR || name.front() == '.' || !name.starts_with(prefix)) continue;
    names.emplace(name.substr(prefix.size()));
  }
  if (folder != nullptr) closedir(folder);
}

// A folder of the user's with a file system of its own in memory.
bool is_own_memory(int folder, int shm, std::uint32_t uid) {
  struct stat above{};
  struct stat about{};
  struct statfs system{};
  return belongs_to(shm, uid) && fstat(folder, &above) == 0 && fstat(shm, &about) == 0 &&
         above.st_dev != about.st_dev && fstatfs(shm, &system) == 0 && system.f_type == TMPFS_MAGIC;
}

std::string mount_memory(int shm, const Identity& user) {
  const std::string options =
      "mode=0700,uid=" + std::to_string(user.uid) + ",gid=" + std::to_string(user.gid);
  const std::string handle = "/proc/self/fd/" + std::to_string(shm);
  const int mounted =
      mount("tmpfs", handle.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, options.c_str());
  return mounted == 0 ? "" : place_failed("mount the shared memory of an MPS daemon");
}

}  // namespace

bool MpsPlaces::open_token() {
  std::string why;
  if (!root_.is_open()) {
    const int parent = open_trusted_parent(o_.root, why);
    if (parent < 0) return false;
    root_.reset(open_passage(parent, o_.root.substr(o_.root.rfind('/') + 1).c_str()));
    close(parent);
  }
  if (root_.is_open() && !token_.is_open()) {
    token_.reset(open_passage(root_.get(), o_.token.c_str()));
  }
  return token_.is_open();
}

MpsPlaces::Place MpsPlaces::make(const std::string& name, const Identity& user) {
  Place place;
  if (!open_token()) {
    place.why = place_failed("open " + o_.root);
    return place;
  }
  if (!is_whole(name, user.uid)) place.why = make_folder(name, user);
  if (!place.why.empty()) return place;
  place.folder.reset(open_below(token_.get(), name.c_str(), kPlaceFolder));
  if (mkdirat(o_.base_fd, cgroup_name(name).c_str(), 0755) == 0 || errno == EEXIST) {
    place.cgroup.reset(open_cgroup(name));
  }
  if (!place.folder.is_open() || !place.cgroup.is_open()) {
    place.why = place_failed("make the place of an MPS daemon");
  }
  return place;
}

bool MpsPlaces::is_whole(const std::string& name, std::uint32_t uid) const {
  const os::Descriptor folder(open_below(token_.get(), name.c_str(), kPlaceFolder));
  if (!belongs_to(folder.get(), uid)) return false;
  const os::Descriptor shm(open_below(folder.get(), "shm", kPlaceFolder));
  return is_own_memory(folder.get(), shm.get(), uid);
}

// It is given away as the last step: until then no other process is in it.
std::string MpsPlaces::make_folder(const std::string& name, const Identity& user) const {
  remove_folder(name);
  if (mkdirat(token_.get(), name.c_str(), 0700) != 0) return place_failed("make " + name);
  const os::Descriptor folder(open_below(token_.get(), name.c_str(), kPlaceFolder));
  for (const char* const part : {"pipe", "log", "shm"}) {
    if (mkdirat(folder.get(), part, 0700) != 0) return place_failed("make " + name);
    const os::Descriptor made(open_below(folder.get(), part, kPlaceFolder));
    if (!made.is_open() || fchown(made.get(), user.uid, user.gid) != 0) {
      return place_failed("give away " + name);
    }
  }
  const os::Descriptor shm(open_below(folder.get(), "shm", kPlaceFolder));
  std::string why = mount_memory(shm.get(), user);
  if (why.empty() && fchown(folder.get(), user.uid, user.gid) != 0) {
    why = place_failed("give away " + name);
  }
  if (!why.empty()) remove_folder(name);
  return why;
}

// The user may have put another thing in the place of shm/ as soon as nothing is mounted there.
void MpsPlaces::remove_folder(const std::string& name) const {
  const std::string shm = "/proc/self/fd/" + std::to_string(token_.get()) + "/" + name + "/shm";
  int mounts = 0;
  while (mounts < kMaxMounts && umount2(shm.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) == 0) ++mounts;
  remove_tree(token_.get(), name.c_str());
}

bool MpsPlaces::remove(const std::string& name) {
  const os::Descriptor cgroup(open_cgroup(name));
  if (cgroup.is_open() && !end_mps_cgroup(cgroup.get(), kRemovalMs)) return false;
  if (cgroup.is_open()) remove_cgroups_below(cgroup.get());
  unlinkat(o_.base_fd, cgroup_name(name).c_str(), AT_REMOVEDIR);
  if (!open_token()) return true;
  remove_folder(name);
  // With the last one goes the launcher's own folder.
  if (unlinkat(root_.get(), o_.token.c_str(), AT_REMOVEDIR) == 0) token_.reset();
  return true;
}

std::set<std::string> MpsPlaces::find_living() {
  std::set<std::string> living;
  for (const std::string& name : names()) {
    const os::Descriptor cgroup(open_cgroup(name));
    const bool lives = cgroup.is_open() && !cgroup_is_empty(cgroup.get());
    if (lives || !remove(name)) living.insert(name);
  }
  return living;
}

std::set<std::string> MpsPlaces::names() {
  std::set<std::string> found;
  if (access((o_.root + "/" + o_.token).c_str(), F_OK) == 0 && open_token()) {
    add_folders(token_.get(), "", found);
  }
  add_folders(o_.base_fd, kCgroupPrefix, found);
  return found;
}

int MpsPlaces::open_cgroup(const std::string& name) const {
  return open_below(o_.base_fd, cgroup_name(name).c_str(), kPlaceFolder);
}

bool end_mps_cgroup(int cgroup, int timeout_ms) {
  const std::int64_t until_ms = os::boot_ms() + timeout_ms;
  const os::Descriptor events(openat(cgroup, "cgroup.events", O_RDONLY | O_CLOEXEC));
  while (!cgroup_is_empty(cgroup)) {
    kill_cgroup(cgroup);
    const std::int64_t left = until_ms - os::boot_ms();
    if (left <= 0) return false;
    pollfd changed{events.get(), POLLPRI, 0};
    constexpr std::int64_t kAgainMs = 100;  // a change between the look and the wait
    poll(&changed, 1, static_cast<int>(std::min(left, kAgainMs)));
  }
  return true;
}

}  // namespace gpu_platform::node
