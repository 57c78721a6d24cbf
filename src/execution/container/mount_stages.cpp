#include "execution/container/mount_stages.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

#include "os/descriptor.h"

namespace gpu_platform::execution {

namespace {

int open_without_links(const std::string& path) {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  return static_cast<int>(syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof how));
}

std::unexpected<ContainerFailure> not_opened(const model::ContainerMount& mount, int error) {
  return container_failed(
      fmt::format("mount of '{}': {}", mount.source,
                  error == ELOOP ? "its path has a symbolic link" : strerror(error)));
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

ContainerDone<> MountStages::open_one(const node::UserSwitch& as_user,
                                      const model::ContainerMount& mount) {
  if (!as_user.borrow()) return container_failed("the job's user cannot be taken on");
  const os::Descriptor source(open_without_links(mount.source));
  const int error = errno;
  if (!node::UserSwitch::give_back()) return container_failed("root's rights are gone");
  if (!source.is_open()) return not_opened(mount, error);
  const std::string stage = make_stage(source.get());
  if (stage.empty()) {
    return container_failed(fmt::format("mount of '{}': {}", mount.source, strerror(errno)));
  }
  opened_.push_back({stage, mount.target, mount.read_only});
  return {};
}

std::string MountStages::make_stage(int source) {
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
  const int moved = move_mount(tree.get(), "", AT_FDCWD, stage.c_str(), MOVE_MOUNT_F_EMPTY_PATH);
  return moved == 0 ? stage : std::string();
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
