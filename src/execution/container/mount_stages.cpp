#include "execution/container/mount_stages.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

#include "node/folders/node_folders.h"
#include "os/descriptor.h"

namespace gpu_platform::execution {

namespace {

int open_without_links(const std::string& path, int flags = O_PATH) {
  open_how how{};
  how.flags = static_cast<unsigned>(flags | O_CLOEXEC);
  how.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  return static_cast<int>(syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof how));
}

std::unexpected<ContainerFailure> not_opened(const model::ContainerMount& mount, int error) {
  return container_failed(
      fmt::format("mount of '{}': {}", mount.source,
                  error == ELOOP ? "its path has a symbolic link" : strerror(error)));
}

std::unexpected<ContainerFailure> not_of_board(const model::ContainerMount& file,
                                               const std::string& why) {
  return container_failed(
      fmt::format("'{}' is not a file of an emulated board: {}", file.source, why));
}

// Returns whether the file is one of the two things that show a board. Not left to the daemon.
bool is_board_file(int file, const std::string& path) {
  constexpr mode_t kOfOthers = S_IWGRP | S_IWOTH;
  struct stat about{};
  if (fstat(file, &about) != 0 || about.st_uid != geteuid() || (about.st_mode & kOfOthers) != 0) {
    return false;
  }
  if (S_ISREG(about.st_mode)) return path.ends_with("/state");
  struct stat library{};
  return S_ISDIR(about.st_mode) && fstatat(file, "libnvidia-ml.so.1", &library, 0) == 0 &&
         S_ISREG(library.st_mode);
}

// What else the mount forbids stays forbidden.
bool make_read_only(const std::string& stage) {
  struct statvfs about{};
  if (statvfs(stage.c_str(), &about) != 0) return false;
  constexpr std::pair<unsigned long, unsigned long> kKept[] = {
      {ST_NOSUID, MS_NOSUID},   {ST_NODEV, MS_NODEV},           {ST_NOEXEC, MS_NOEXEC},
      {ST_NOATIME, MS_NOATIME}, {ST_NODIRATIME, MS_NODIRATIME}, {ST_RELATIME, MS_RELATIME}};
  unsigned long flags = MS_REMOUNT | MS_BIND | MS_RDONLY;
  for (const auto& [seen, flag] : kKept) {
    if ((about.f_flag & seen) != 0) flags |= flag;
  }
  return mount(nullptr, stage.c_str(), nullptr, flags, nullptr) == 0;
}

}  // namespace

ContainerDone<> MountStages::open(node::Identity user,
                                  const std::vector<model::ContainerMount>& mounts,
                                  std::string begin) {
  begin_ = std::move(begin);
  const node::UserSwitch as_user(std::move(user));
  for (const model::ContainerMount& mount : mounts) {
    if (auto opened = open_one(as_user, mount); !opened) return opened;
  }
  return {};
}

ContainerDone<> MountStages::look_at(const std::vector<model::ContainerMount>& mounts) {
  for (const model::ContainerMount& mount : mounts) {
    const os::Descriptor source(open_without_links(mount.source));
    if (!source.is_open()) return not_opened(mount, errno);
    opened_.push_back({mount.source, mount.target, mount.read_only});
  }
  return {};
}

ContainerDone<> MountStages::open_driver_file(const std::string& path, std::string begin) {
  begin_ = std::move(begin);
  const model::ContainerMount file{path, path, true};
  const os::Descriptor source(::open(path.c_str(), O_PATH | O_CLOEXEC));
  return source.is_open() ? keep(source.get(), file) : not_opened(file, errno);
}

ContainerDone<> MountStages::open_board_files(node::Identity user,
                                              const std::vector<model::ContainerMount>& files,
                                              std::string begin) {
  begin_ = std::move(begin);
  const node::UserSwitch as_user(std::move(user));
  for (const model::ContainerMount& file : files) {
    if (file.source != file.target) return not_of_board(file, "it is to be at another place");
    std::string why;
    const os::Descriptor folder(node::open_trusted_parent(file.source, why));
    if (!folder.is_open()) return not_of_board(file, why);
    if (auto opened = open_one(as_user, {file.source, file.target, true}, true); !opened) {
      return opened;
    }
  }
  return {};
}

// What the daemon names is opened to be read, which O_PATH does not ask for.
ContainerDone<> MountStages::open_one(const node::UserSwitch& as_user,
                                      const model::ContainerMount& mount, bool is_of_board) {
  if (!as_user.borrow()) return container_failed("the job's user cannot be taken on");
  const os::Descriptor source(
      open_without_links(mount.source, is_of_board ? O_RDONLY | O_NONBLOCK : O_PATH));
  const int error = errno;
  if (!node::UserSwitch::give_back()) return container_failed("root's rights are gone");
  if (!source.is_open()) return not_opened(mount, error);
  if (is_of_board && !is_board_file(source.get(), mount.source)) {
    return not_of_board(mount, "it is neither root's state of a board nor root's emulator");
  }
  return keep(source.get(), mount);
}

ContainerDone<> MountStages::keep(int source, const model::ContainerMount& mount) {
  const std::string stage = make_stage(source, mount.read_only);
  if (stage.empty()) {
    return container_failed(fmt::format("mount of '{}': {}", mount.source, strerror(errno)));
  }
  opened_.push_back({stage, mount.target, mount.read_only});
  return {};
}

std::string MountStages::make_stage(int source, bool read_only) {
  if (folder_.empty()) {
    std::string folder = begin_ + "XXXXXX";
    if (mkdtemp(folder.data()) == nullptr) return {};
    folder_ = folder;
  }
  struct stat about{};
  if (fstat(source, &about) != 0) return {};
  std::string stage = folder_ + "/" + std::to_string(stages_++);
  if (S_ISDIR(about.st_mode)) {
    if (mkdir(stage.c_str(), 0700) != 0) return {};
  } else {
    const os::Descriptor file(::open(stage.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600));
    if (!file.is_open()) return {};
  }
  const os::Descriptor tree(
      open_tree(source, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
  if (!tree.is_open()) return {};
  const bool is_there =
      move_mount(tree.get(), "", AT_FDCWD, stage.c_str(), MOVE_MOUNT_F_EMPTY_PATH) == 0 &&
      mount(nullptr, stage.c_str(), nullptr, MS_PRIVATE, nullptr) == 0 &&
      (!read_only || make_read_only(stage));
  return is_there ? stage : std::string();
}

void MountStages::remove() {
  if (folder_.empty()) return;
  for (std::size_t i = 0; i < stages_; ++i) {
    const std::string stage = folder_ + "/" + std::to_string(i);
    umount2(stage.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW);
    if (rmdir(stage.c_str()) != 0) unlink(stage.c_str());
  }
  rmdir(folder_.c_str());
  folder_.clear();
}

}  // namespace gpu_platform::execution
