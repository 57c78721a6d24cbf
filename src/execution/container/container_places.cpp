#include "execution/container/container_places.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <deque>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "execution/container/start_hold.h"
#include "model/container.h"
#include "node/user_switch.h"
#include "os/descriptor.h"

namespace gpu_platform::execution {

namespace {

constexpr int kMaxLinks = 40;
constexpr std::size_t kMaxWhy = 1024;

// A file or folder on the way to a place, and whether it belongs to a mount of the job.
struct Step {
  os::Descriptor file;
  struct stat about{};
  bool is_users = false;
};

struct Root {  // of what has been mounted for the job
  dev_t device = 0;
  ino_t inode = 0;
};

std::string words(int error) {
  switch (error) {
    case ELOOP:
      return "its path has a symbolic link inside another mount";
    case EROFS:
      return "it is not there, and the file system is read-only";
    default:
      return strerror(error);
  }
}

constexpr std::string_view kSharedMemory = "/dev/shm";

std::deque<std::string> parts_of_path(std::string_view path) {
  std::deque<std::string> parts;
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (!part.empty() && part != ".") parts.emplace_back(part);
    path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
  }
  return parts;
}

bool is_of_kernel(int file) {
  struct statfs about{};
  if (fstatfs(file, &about) != 0) return true;
  constexpr decltype(about.f_type) kOfKernel[] = {
      PROC_SUPER_MAGIC,   SYSFS_MAGIC,    CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC,
      DEVPTS_SUPER_MAGIC, DEBUGFS_MAGIC,  TRACEFS_MAGIC,      SECURITYFS_MAGIC,
      BPF_FS_MAGIC,       BINFMTFS_MAGIC, 0x19800202 /* mqueue */};
  return std::ranges::find(kOfKernel, about.f_type) != std::end(kOfKernel);
}

// Finds places in one container. Runs in its mount namespace, with root's rights.
class Finder {
 public:
  Finder(int root, const node::UserSwitch& user) : user_(user) {
    own_files_.reset(open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC));
    Step top;
    top.file.reset(fcntl(root, F_DUPFD_CLOEXEC, 0));
    way_.push_back(std::move(top));
  }

  // -1: errno says why not, or `why()`.
  os::Descriptor find(const std::string& target, bool is_folder) {
    why_.clear();
    is_for_shared_memory_ = target == kSharedMemory;
    way_.resize(1);
    rest_ = parts_of_path(target);
    int links = 0;
    while (!rest_.empty()) {
      const std::string part = std::move(rest_.front());
      rest_.pop_front();
      if (part == "..") {
        if (way_.size() > 1) way_.pop_back();
        continue;
      }
      Step step = enter(part, is_folder || !rest_.empty());
      if (!step.file.is_open()) return {};
      if (S_ISLNK(step.about.st_mode)) {
        if (step.is_users || ++links > kMaxLinks || !follow(step)) return fail(ELOOP);
        continue;
      }
      way_.push_back(std::move(step));
    }
    return checked(is_folder);
  }
  const std::string& why() const { return why_; }

  void note_root(int mount) {
    struct stat about{};
    if (fstat(mount, &about) == 0) roots_.push_back({about.st_dev, about.st_ino});
  }

 private:
  os::Descriptor fail(int error) {
    errno = error;
    return {};
  }

  bool is_root(const struct stat& about) const {
    return std::ranges::any_of(roots_, [&](const Root& root) {
      return root.device == about.st_dev && root.inode == about.st_ino;
    });
  }

  Step enter(const std::string& part, bool is_folder) {
    const Step& above = way_.back();
    Step step;
    step.is_users = above.is_users;
    if (step.is_users && !user_.borrow()) return step;
    step.file.reset(open_part(above.file.get(), part));
    if (!step.file.is_open() && errno == ENOENT) {
      if (make(above, part, is_folder)) step.file.reset(open_part(above.file.get(), part));
    }
    const int error = errno;
    if (step.is_users && !node::UserSwitch::give_back()) _exit(1);
    errno = error;
    if (!step.file.is_open()) return step;
    if (fstat(step.file.get(), &step.about) != 0) return {};
    step.is_users = step.is_users || is_root(step.about);
    return step;
  }

  static int open_part(int above, const std::string& part) {
    return openat(above, part.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
  }

  static bool make_in(int above, const std::string& part, bool is_folder) {
    if (is_folder) return mkdirat(above, part.c_str(), 0755) == 0 || errno == EEXIST;
    const os::Descriptor file(
        openat(above, part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
    return file.is_open() || errno == EEXIST;
  }

  // A container whose root filesystem is read-only gets its places all the same: they are made
  // through a view of that folder of which no one else knows.
  static bool make(const Step& above, const std::string& part, bool is_folder) {
    if (make_in(above.file.get(), part, is_folder)) return true;
    if (errno != EROFS || above.is_users) return false;
    const os::Descriptor view(
        open_tree(above.file.get(), "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
    mount_attr writable{};
    writable.attr_clr = MOUNT_ATTR_RDONLY;
    const bool is_writable = view.is_open() && mount_setattr(view.get(), "", AT_EMPTY_PATH,
                                                             &writable, sizeof writable) == 0;
    if (is_writable) return make_in(view.get(), part, is_folder);
    errno = EROFS;
    return false;
  }

  bool follow(const Step& link) {
    char text[PATH_MAX];
    const ssize_t size = readlinkat(link.file.get(), "", text, sizeof text);
    if (size <= 0 || size == static_cast<ssize_t>(sizeof text)) return false;
    const std::string_view to(text, static_cast<std::size_t>(size));
    if (to.front() == '/') way_.resize(1);
    std::deque<std::string> parts = parts_of_path(to);
    rest_.insert(rest_.begin(), std::make_move_iterator(parts.begin()),
                 std::make_move_iterator(parts.end()));
    return true;
  }

  // Outside of the job's mounts no one can rename what is on the way, so its path is true.
  os::Descriptor checked(bool is_folder) {
    Step& found = way_.back();
    if (S_ISDIR(found.about.st_mode) != is_folder) {
      why_ = is_folder ? "it is not a folder" : "it is not a file";
      return {};
    }
    if (!is_folder && !S_ISREG(found.about.st_mode)) {
      why_ = "it is not a regular file";
      return {};
    }
    if (is_of_kernel(found.file.get())) {
      why_ = "it is the kernel's";
      return {};
    }
    if (found.is_users) return std::move(found.file);
    char path[PATH_MAX];
    const ssize_t size =
        readlinkat(own_files_.get(), std::to_string(found.file.get()).c_str(), path, sizeof path);
    if (size <= 0) return {};
    const std::string_view found_at(path, static_cast<std::size_t>(size));
    if (is_for_shared_memory_ && found_at == kSharedMemory) return std::move(found.file);
    why_ = model::error_in_place(found_at);
    return why_.empty() ? std::move(found.file) : os::Descriptor();
  }

  const node::UserSwitch& user_;
  os::Descriptor own_files_;
  std::vector<Step> way_;  // from the root on
  std::deque<std::string> rest_;
  std::vector<Root> roots_;
  bool is_for_shared_memory_ = false;  // what is to be found
  std::string why_;
};

struct Prepared {
  const ContainerPlace* place = nullptr;
  os::Descriptor mount;
  bool is_folder = true;
};

os::Descriptor make_tmpfs(std::uint64_t bytes) {
  const os::Descriptor made(fsopen("tmpfs", FSOPEN_CLOEXEC));
  const std::string size = std::to_string(bytes);
  const auto set = [&](const char* key, const char* value) {
    return fsconfig(made.get(), FSCONFIG_SET_STRING, key, value, 0) == 0;
  };
  if (!made.is_open() || !set("size", size.c_str()) || !set("mode", "1777") ||
      fsconfig(made.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) {
    return {};
  }
  return os::Descriptor(fsmount(made.get(), FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV));
}

Prepared prepare_place(const ContainerPlace& place) {
  Prepared prepared{&place, {}, true};
  if (place.source.empty()) {
    prepared.mount = make_tmpfs(place.bytes);
    return prepared;
  }
  prepared.mount.reset(
      open_tree(AT_FDCWD, place.source.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
  struct stat about{};
  if (!prepared.mount.is_open() || fstat(prepared.mount.get(), &about) != 0) return {&place, {}};
  prepared.is_folder = S_ISDIR(about.st_mode);
  struct statvfs options{};
  const bool is_as_asked = !place.read_only || (fstatvfs(prepared.mount.get(), &options) == 0 &&
                                                (options.f_flag & ST_RDONLY) != 0);
  if (!is_as_asked) {
    prepared.mount.reset();
    errno = EROFS;
  }
  return prepared;
}

// A file of the image, for good: it may have other names, by which no user can write to it then.
bool overwrite(int folder, const char* name, std::string_view text) {
  const os::Descriptor file(
      openat(folder, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644));
  struct stat about{};
  if (!file.is_open() || fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode)) return false;
  return fchown(file.get(), 0, 0) == 0 && fchmod(file.get(), 0644) == 0 &&
         ftruncate(file.get(), 0) == 0 &&
         write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

bool is_of_root_alone(int folder) {
  struct stat about{};
  return fstat(folder, &about) == 0 && about.st_uid == 0 && about.st_gid == 0 &&
         (about.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// Through a view of the image's file system alone, without what is mounted in it. Who may make
// files in its root may do so further, and not rename root's.
bool take_identity_over(int root, const node::Identity& user) {
  const os::Descriptor view(
      open_tree(root, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
  mount_attr writable{};
  writable.attr_clr = MOUNT_ATTR_RDONLY;
  struct statvfs options{};
  if (!view.is_open() || fstatvfs(view.get(), &options) != 0) return false;
  if ((options.f_flag & ST_RDONLY) != 0 &&
      mount_setattr(view.get(), "", AT_EMPTY_PATH, &writable, sizeof writable) != 0) {
    return false;
  }
  constexpr int kFolder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  const os::Descriptor top(openat(view.get(), ".", kFolder));
  const os::Descriptor etc(openat(view.get(), "etc", kFolder));
  if (!top.is_open() || !etc.is_open()) return false;
  const bool is_roots = is_of_root_alone(top.get()) ||
                        (fchown(top.get(), 0, 0) == 0 && fchmod(top.get(), 01777) == 0);
  return is_roots && fchown(etc.get(), 0, 0) == 0 && fchmod(etc.get(), 0755) == 0 &&
         overwrite(etc.get(), "passwd", passwd_of(user)) &&
         overwrite(etc.get(), "group", group_of(user));
}

// In a process of its own: it stays in the container's mount namespace. Returns why it could not;
// empty: all of them are there.
std::string put_all(int mounts, int root, const node::Identity& user,
                    const std::vector<ContainerPlace>& places) {
  std::vector<Prepared> all;
  for (const ContainerPlace& place : places) {
    all.push_back(prepare_place(place));
    if (!all.back().mount.is_open()) {
      return fmt::format("mount at '{}': {}", place.target, strerror(errno));
    }
  }
  const node::UserSwitch as_user(user);
  umask(022);
  Finder finder(root, as_user);
  if (setns(mounts, CLONE_NEWNS) != 0) {
    return fmt::format("enter the container's mounts: {}", strerror(errno));
  }
  if (!take_identity_over(root, user)) {
    return fmt::format("the image's /etc cannot be the platform's: {}", strerror(errno));
  }
  for (const Prepared& one : all) {
    const os::Descriptor target = finder.find(one.place->target, one.is_folder);
    const bool is_done =
        target.is_open() && move_mount(one.mount.get(), "", target.get(), "",
                                       MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) == 0;
    if (!is_done) {
      return fmt::format("mount at '{}': {}", one.place->target,
                         finder.why().empty() ? words(errno) : finder.why());
    }
    if (!one.place->source.empty()) finder.note_root(one.mount.get());
  }
  return {};
}

std::size_t depth_of(const ContainerPlace& place) {
  return parts_of_path(place.target).size();
}

// Returns what the child has written, or nothing if it is to be given up.
std::optional<std::string> hear(int child, int from, const std::function<bool(int fd)>& wait) {
  std::string said;
  char text[kMaxWhy];
  while (true) {
    if (!wait(from)) {
      kill(child, SIGKILL);
      return std::nullopt;
    }
    const ssize_t got = read(from, text, sizeof text);
    if (got > 0) said.append(text, static_cast<std::size_t>(got));
    if (got == 0) return said;
    if (got < 0 && errno != EAGAIN && errno != EINTR) return "read";
  }
}

}  // namespace

ContainerDone<> put_places(const HeldProcess& first, const node::Identity& user,
                           std::vector<ContainerPlace> places,
                           const std::function<bool(int fd)>& wait) {
  std::ranges::stable_sort(places, {}, depth_of);
  const std::string process = fmt::format("/proc/{}", first.pid);
  const os::Descriptor root(open((process + "/root").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const os::Descriptor mounts(open((process + "/ns/mnt").c_str(), O_RDONLY | O_CLOEXEC));
  int ends[2];
  if (!root.is_open() || !mounts.is_open() || first.has_ended() || pipe2(ends, O_CLOEXEC) != 0) {
    return container_failed("the container ended before its mounts were there");
  }
  os::Descriptor from(ends[0]);
  os::Descriptor to(ends[1]);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    std::string why = put_all(mounts.get(), root.get(), user, places);
    why.resize(std::min(why.size(), kMaxWhy));
    const std::string said = "done" + why;
    const bool is_said =
        write(to.get(), said.data(), said.size()) == static_cast<ssize_t>(said.size());
    _exit(is_said ? 0 : 1);
  }
  to.reset();
  if (child < 0) return container_failed(fmt::format("start a process: {}", strerror(errno)));
  fcntl(from.get(), F_SETFL, O_NONBLOCK);
  const auto said = hear(child, from.get(), wait);
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (!said) return container_failed("stopped meanwhile");
  if (!said->starts_with("done")) return container_failed("the mounts could not be made");
  return said->size() == 4 ? ContainerDone<>() : container_failed(said->substr(4));
}

}  // namespace gpu_platform::execution
