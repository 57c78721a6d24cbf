#include "node/folders/private_folders.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "node/folders/host_names.h"
#include "node/folders/node_folders.h"
#include "node/folders/remove_tree.h"
#include "node/raw_call.h"
#include "node/syscalls.h"

namespace gpu_platform::node {

namespace {

constexpr const char* kTmp = "/tmp";
constexpr const char* kShm = "/dev/shm";
constexpr const char* kProc = "/proc";
constexpr unsigned long kPlain = MS_NOSUID | MS_NODEV;
constexpr std::size_t kMaxPath = 4096;
constexpr std::size_t kMaxHosts = 256 * 1024;

std::string folder_failed(const std::string& what) {
  return what + ": " + strerror(errno);
}

// Returns the beginning of a file of the system's; empty if it cannot be read.
std::string text_of_file(const char* path) {
  std::string text(kMaxHosts, '\0');
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  const ssize_t got = fd < 0 ? -1 : read(fd, text.data(), text.size());
  if (fd >= 0) close(fd);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

// Returns the path without "//", "." and ".."; links are not followed.
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

// What follows, to the end of the namespace, runs in a child that shares its parent's memory.

int mount_at(const char* source, const char* target, const char* type, unsigned long flags,
             const char* options = nullptr) {
  return static_cast<int>(raw_call(SYS_mount, source, target, type, flags, options));
}

int make_folder(const char* path) {
  const long made = raw_call(SYS_mkdirat, AT_FDCWD, path, 0755);
  return made == -EEXIST ? 0 : static_cast<int>(made);
}

// The folders above `path` and itself, as far as they are missing.
int make_folders(const std::string& path) {
  char part[kMaxPath];
  if (path.size() >= sizeof part) return -ENAMETOOLONG;
  memcpy(part, path.c_str(), path.size() + 1);
  for (char* slash = strchr(part + 1, '/'); slash != nullptr; slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    if (const int failed = make_folder(part); failed != 0) return failed;
    *slash = '/';
  }
  return make_folder(part);
}

// The folder is known by its handle, so a folder that has its name by now does not matter. What is
// mounted within later stays there.
int mount_tmp(const PrivateFolders& folders) {
  const long moved =
      raw_call(SYS_move_mount, folders.tmp, "", AT_FDCWD, kTmp, MOVE_MOUNT_F_EMPTY_PATH);
  if (moved != 0) return static_cast<int>(moved);
  if (const int error = mount_at(nullptr, kTmp, nullptr, MS_PRIVATE); error != 0) return error;
  return mount_at(nullptr, kTmp, nullptr, MS_REMOUNT | MS_BIND | kPlain);
}

// As for /tmp.
int mount_shared_shm(const PrivateFolders& folders) {
  const long moved =
      raw_call(SYS_move_mount, folders.shm, "", AT_FDCWD, kShm, MOVE_MOUNT_F_EMPTY_PATH);
  return moved != 0 ? static_cast<int>(moved) : mount_at(nullptr, kShm, nullptr, MS_PRIVATE);
}

int replace_shm(const PrivateFolders& folders) {
  if (folders.shm >= 0) return mount_shared_shm(folders);
  const int error = mount_at("tmpfs", kShm, "tmpfs", kPlain, folders.shm_options.c_str());
  return error == -ENOENT ? 0 : error;
}

long copy_of_tree(int fd, unsigned flags) {
  return raw_call(SYS_open_tree, fd, "",
                  OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | flags);
}

// The place of the file for /etc/hosts until it is mounted: in the job's /tmp, whose end is its
// own.
constexpr const char* kHostsName = ".hosts";
constexpr const char* kHostsInTmp = "/tmp/.hosts";
constexpr const char* kHosts = "/etc/hosts";

// Root's own file, made before the folder is given away. Without it names of nodes have no address,
// and nothing else is missing.
void make_hosts(int folder, PrivateFolders& folders) {
  if (folders.hosts_text.empty()) return;
  const int file =
      openat(folder, kHostsName, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
  if (file < 0) return;
  const std::string& text = folders.hosts_text;
  const bool is_whole = fchmod(file, 0644) == 0 &&
                        write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (is_whole) folders.hosts = static_cast<int>(copy_of_tree(file, 0));
  close(file);
}

// What fails here leaves the host's file in its place.
void replace_hosts(const PrivateFolders& folders) {
  if (folders.hosts_text.empty()) return;
  const long moved = folders.hosts < 0 ? -ENOENT
                                       : raw_call(SYS_move_mount, folders.hosts, "", AT_FDCWD,
                                                  kHosts, MOVE_MOUNT_F_EMPTY_PATH);
  if (moved == 0)
    mount_at(nullptr, kHosts, nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOEXEC | kPlain);
  raw_call(SYS_unlinkat, AT_FDCWD, kHostsInTmp, 0);
}

// Ours to close, also if the call fails.
int show_tree(int tree, const char* path) {
  const long moved = raw_call(SYS_move_mount, tree, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH);
  raw_close(tree);
  return static_cast<int>(moved);
}

// A copy of the mount that is there costs a third of a new one, but Linux makes it only since 6.15.
int hide_processes(int proc) {
  const long copy = copy_of_tree(proc, 0);
  if (copy >= 0) return show_tree(static_cast<int>(copy), kProc);
  return mount_at("proc", kProc, "proc", kPlain | MS_NOEXEC, "hidepid=invisible");
}

}  // namespace

std::string error_in_private_folders() {
  const int pid = fork_into_cgroup(-1);
  if (pid == 0) _exit(-enter_mount_namespace());
  int status = 0;
  while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  if (pid > 0 && WIFEXITED(status)) errno = WEXITSTATUS(status);
  return folder_failed("make a mount namespace");
}

int open_hidden_proc(std::string& why) {
  const int context = static_cast<int>(syscall(SYS_fsopen, "proc", FSOPEN_CLOEXEC));
  const bool is_made =
      context >= 0 &&
      syscall(SYS_fsconfig, context, FSCONFIG_SET_STRING, "hidepid", "invisible", 0) == 0 &&
      syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) == 0;
  const int proc =
      is_made ? static_cast<int>(syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC,
                                         MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC))
              : -1;
  if (proc < 0) why = folder_failed("mount /proc with hidepid=invisible (Linux 5.8)");
  if (context >= 0) close(context);
  return proc;
}

std::string make_private_tmp(int tmp_fd, const std::string& name, FolderOwner owner,
                             PrivateFolders& folders) {
  if (mkdirat(tmp_fd, name.c_str(), 0700) != 0) {
    // Left by an attempt to start that came to nothing.
    remove_tree(tmp_fd, name.c_str());
    if (mkdirat(tmp_fd, name.c_str(), 0700) != 0) return folder_failed("make a folder for /tmp");
  }
  const int folder = open_below(tmp_fd, name.c_str(), O_RDONLY | O_DIRECTORY);
  // This is done here, because the folder's mount is not one of the job's mount namespace.
  if (folder >= 0) make_hosts(folder, folders);
  if (folder >= 0 && fchown(folder, owner.uid, owner.gid) == 0) {
    folders.tmp = static_cast<int>(copy_of_tree(folder, 0));
    if (folders.tmp < 0) errno = -folders.tmp;
  }
  const std::string why = folders.tmp >= 0 ? "" : folder_failed("give away the folder for /tmp");
  if (folder >= 0) close(folder);
  return why;
}

// The folder above it belongs to the owner, so something else may have been put in its place.
std::string share_shm(const std::string& path, FolderOwner owner, PrivateFolders& folders) {
  const int folder = open(path.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) return folder_failed("open " + path);
  struct stat about{};
  struct statfs system{};
  const bool is_its = fstat(folder, &about) == 0 && fstatfs(folder, &system) == 0 &&
                      about.st_uid == owner.uid && system.f_type == TMPFS_MAGIC;
  if (is_its) folders.shm = static_cast<int>(copy_of_tree(folder, 0));
  close(folder);
  if (!is_its) return path + " is not the shared memory of the user's MPS server";
  if (folders.shm >= 0) return {};
  errno = -folders.shm;
  folders.shm = -1;
  return folder_failed("open " + path + " as a mount");
}

void close_private_tmp(PrivateFolders& folders) {
  for (int* const fd : {&folders.tmp, &folders.shm, &folders.hosts}) {
    if (*fd >= 0) close(*fd);
    *fd = -1;
  }
}

void describe_folders(std::uint64_t memory_bytes, std::string_view workdir,
                      std::string_view emulated_nodes, PrivateFolders& folders) {
  folders.shm_options = "mode=1777";
  // Files there are the job's memory. Without a limit the kernel's own applies, half of all memory.
  if (memory_bytes > 0) folders.shm_options += ",size=" + std::to_string(memory_bytes);
  std::string plain = plain_path(workdir);
  if (plain.starts_with("/tmp/") || plain.starts_with("/dev/shm/")) {
    folders.workdir = std::move(plain);
  }
  if (!emulated_nodes.empty())
    folders.hosts_text = hosts_with_names(text_of_file(kHosts), emulated_nodes);
}

int enter_mount_namespace() {
  const long own = raw_call(SYS_unshare, CLONE_NEWNS);
  return own != 0 ? static_cast<int>(own) : mount_at(nullptr, "/", nullptr, MS_REC | MS_SLAVE);
}

int replace_folders(const PrivateFolders& folders, int workdir_fd) {
  long tree = -1;
  if (workdir_fd >= 0) {
    tree = copy_of_tree(workdir_fd, AT_RECURSIVE);
    if (tree < 0) return static_cast<int>(tree);
  }
  int error = mount_tmp(folders);
  if (error == 0) replace_hosts(folders);
  if (error == 0) error = replace_shm(folders);
  if (error == 0 && folders.proc >= 0) error = hide_processes(folders.proc);
  if (error != 0 || tree < 0) return error;
  error = make_folders(folders.workdir);
  return error != 0 ? error : show_tree(static_cast<int>(tree), folders.workdir.c_str());
}

}  // namespace gpu_platform::node
