#include "node/folders/private_folders.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "node/folders/node_folders.h"
#include "node/folders/remove_tree.h"
#include "node/syscalls.h"

namespace gpu_platform::node {

namespace {

constexpr const char* kTmp = "/tmp";
constexpr const char* kShm = "/dev/shm";
constexpr std::size_t kMaxPath = 4096;

std::string failed(const std::string& what) {
  return what + ": " + strerror(errno);
}

// Without "//", "." and ".."; links are not followed.
std::string plain_path(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const std::size_t end = path.find('/');
    const std::string_view part = path.substr(0, end);
    path.remove_prefix(end == std::string_view::npos ? path.size() : end + 1);
    if (part == ".." && !parts.empty()) parts.pop_back();
    if (!part.empty() && part != "." && part != "..") parts.push_back(part);
  }
  std::string plain;
  for (const std::string_view part : parts) plain += "/" + std::string(part);
  return plain;
}

// The folders above `path` and itself, as far as they are missing.
bool make_folders(const std::string& path) {
  char part[kMaxPath];
  if (path.size() >= sizeof part) {
    errno = ENAMETOOLONG;
    return false;
  }
  memcpy(part, path.c_str(), path.size() + 1);
  for (char* slash = strchr(part + 1, '/'); slash != nullptr; slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    if (mkdir(part, 0755) != 0 && errno != EEXIST) return false;
    *slash = '/';
  }
  return mkdir(part, 0755) == 0 || errno == EEXIST;
}

int copy_of_tree(int folder, int depth) {
  return static_cast<int>(syscall(SYS_open_tree, folder, "",
                                  OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | depth));
}

// By handle: whatever is called so by now is not asked. What is mounted within later stays there.
bool mount_tmp(const PrivateFolders& folders) {
  return syscall(SYS_move_mount, folders.tmp, "", AT_FDCWD, kTmp, MOVE_MOUNT_F_EMPTY_PATH) == 0 &&
         mount(nullptr, kTmp, nullptr, MS_PRIVATE, nullptr) == 0;
}

bool show_again(int tree, const std::string& path) {
  return make_folders(path) &&
         syscall(SYS_move_mount, tree, "", AT_FDCWD, path.c_str(), MOVE_MOUNT_F_EMPTY_PATH) == 0;
}

}  // namespace

std::string objection_to_private_folders() {
  const int pid = fork_into_cgroup(-1);
  if (pid == 0) _exit(enter_mount_namespace() ? 0 : errno);
  int status = 0;
  while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  if (pid > 0 && WIFEXITED(status)) errno = WEXITSTATUS(status);
  return failed("make a mount namespace");
}

std::string make_private_tmp(int tmp_fd, const std::string& name, FolderOwner owner,
                             PrivateFolders& folders) {
  if (mkdirat(tmp_fd, name.c_str(), 0700) != 0) {
    // Left by an attempt to start that came to nothing.
    remove_tree(tmp_fd, name.c_str());
    if (mkdirat(tmp_fd, name.c_str(), 0700) != 0) return failed("make a folder for /tmp");
  }
  const int folder = open_below(tmp_fd, name.c_str(), O_RDONLY | O_DIRECTORY);
  // Here and not in the job's mount namespace, whose own this folder's mount is not.
  if (folder >= 0 && fchown(folder, owner.uid, owner.gid) == 0) {
    folders.tmp = copy_of_tree(folder, 0);
  }
  const std::string why = folders.tmp >= 0 ? "" : failed("give away the folder for /tmp");
  if (folder >= 0) close(folder);
  return why;
}

void close_private_tmp(PrivateFolders& folders) {
  if (folders.tmp >= 0) close(folders.tmp);
  folders.tmp = -1;
}

void describe_folders(std::uint64_t memory_bytes, std::string_view workdir,
                      PrivateFolders& folders) {
  folders.shm_options = "mode=1777";
  // What lies there is the job's memory; without a limit the kernel's own holds, half of all.
  if (memory_bytes > 0) folders.shm_options += ",size=" + std::to_string(memory_bytes);
  std::string plain = plain_path(workdir);
  if (plain.starts_with("/tmp/") || plain.starts_with("/dev/shm/")) {
    folders.workdir = std::move(plain);
  }
}

bool enter_mount_namespace() {
  return unshare(CLONE_NEWNS) == 0 && mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) == 0;
}

bool replace_folders(const PrivateFolders& folders, int workdir_fd) {
  int tree = -1;
  if (workdir_fd >= 0) {
    tree = copy_of_tree(workdir_fd, AT_RECURSIVE);
    if (tree < 0) return false;
  }
  constexpr unsigned long kPlain = MS_NOSUID | MS_NODEV;
  const bool replaced =
      mount_tmp(folders) &&
      mount(nullptr, kTmp, nullptr, MS_REMOUNT | MS_BIND | kPlain, nullptr) == 0 &&
      (mount("tmpfs", kShm, "tmpfs", kPlain, folders.shm_options.c_str()) == 0 || errno == ENOENT);
  const bool shown = replaced && (tree < 0 || show_again(tree, folders.workdir));
  const int error = errno;
  if (tree >= 0) close(tree);
  errno = error;
  return shown;
}

}  // namespace gpu_platform::node
