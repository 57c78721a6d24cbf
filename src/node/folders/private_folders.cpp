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

#include "node/folders/remove_tree.h"
#include "node/protocol.h"
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

// The path leads through folders of others, so what came of it is compared.
bool bind_tmp(const PrivateFolders& folders) {
  struct stat about{};
  if (mount(folders.tmp.c_str(), kTmp, nullptr, MS_BIND, nullptr) != 0) return false;
  if (stat(kTmp, &about) != 0) return false;
  if (about.st_dev == folders.tmp_device && about.st_ino == folders.tmp_inode) return true;
  errno = ESTALE;
  return false;
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

int open_private_tmp(const std::string& root, std::string& why) {
  const std::string path = private_tmp_dir(root);
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    why = failed("make " + path);
    return -1;
  }
  const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  struct stat about{};
  if (fd < 0 || fstat(fd, &about) != 0) {
    why = failed("open " + path);
  } else if (about.st_uid != geteuid() || (about.st_mode & 077) != 0) {
    why = path + " is not ours alone";
  } else {
    return fd;
  }
  if (fd >= 0) close(fd);
  return -1;
}

std::string make_private_tmp(int tmp_fd, const std::string& name, FolderOwner owner,
                             PrivateFolders& folders) {
  if (mkdirat(tmp_fd, name.c_str(), 0700) != 0) {
    // Left by an attempt to start that came to nothing.
    remove_tree(tmp_fd, name.c_str());
    if (mkdirat(tmp_fd, name.c_str(), 0700) != 0) return failed("make a folder for /tmp");
  }
  struct stat about{};
  if (fchownat(tmp_fd, name.c_str(), owner.uid, owner.gid, AT_SYMLINK_NOFOLLOW) != 0 ||
      fstatat(tmp_fd, name.c_str(), &about, AT_SYMLINK_NOFOLLOW) != 0) {
    return failed("give away the folder for /tmp");
  }
  folders.tmp_device = about.st_dev;
  folders.tmp_inode = about.st_ino;
  return {};
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
    tree = static_cast<int>(
        syscall(SYS_open_tree, workdir_fd, "",
                OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE));
    if (tree < 0) return false;
  }
  constexpr unsigned long kPlain = MS_NOSUID | MS_NODEV;
  const bool replaced =
      bind_tmp(folders) &&
      mount(nullptr, kTmp, nullptr, MS_REMOUNT | MS_BIND | kPlain, nullptr) == 0 &&
      (mount("tmpfs", kShm, "tmpfs", kPlain, folders.shm_options.c_str()) == 0 || errno == ENOENT);
  const bool shown = replaced && (tree < 0 || show_again(tree, folders.workdir));
  const int error = errno;
  if (tree >= 0) close(tree);
  errno = error;
  return shown;
}

}  // namespace gpu_platform::node
