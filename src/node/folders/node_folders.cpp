#include "node/folders/node_folders.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string_view>

#include "os/descriptor.h"

namespace gpu_platform::node {

namespace {

constexpr int kMaxLinks = 40;
constexpr int kFolder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

std::string failed(std::string_view what, const std::string& path) {
  return std::string(what) + " " + path + ": " + strerror(errno);
}

std::string_view take_name(std::string_view& path) {
  path.remove_prefix(std::min(path.find_first_not_of('/'), path.size()));
  const std::size_t end = std::min(path.find('/'), path.size());
  const std::string_view name = path.substr(0, end);
  path.remove_prefix(end);
  return name;
}

// Returns the error in the owner of a folder or link: empty if only root and we can change what
// it leads to.
std::string error_in_owner(const std::string& shown, const struct stat& about) {
  if (about.st_uid != 0 && about.st_uid != geteuid()) {
    return shown + " belongs to user " + std::to_string(about.st_uid) +
           ", who could replace it; choose a folder whose path belongs to root";
  }
  if (S_ISLNK(about.st_mode)) return {};
  const bool is_sticky = (about.st_mode & S_ISVTX) != 0;
  const bool is_open =
      (about.st_mode & S_IWOTH) != 0 || ((about.st_mode & S_IWGRP) != 0 && about.st_gid != 0);
  if (!is_open || is_sticky) return {};
  return shown +
         " can be written to by users other than root, who could replace files there: chmod "
         "go-w " +
         shown;
}

// Goes down a path name by name. The check is made only with root's rights: without them the daemon
// could harm only its own user.
class Walk {
 public:
  explicit Walk(std::string& why)
      : why_(why), here_(open("/", kFolder)), is_strict_(geteuid() == 0) {}

  // To the last name of the path, which may be missing if `makes`; -1: why.
  int go(const std::string& path, bool makes) {
    std::string rest = path;
    while (true) {
      std::string_view view = rest;
      const std::string name(take_name(view));
      if (name.empty()) return here_.release();
      std::string after(view);
      if (!step(name, makes && after.find_first_not_of('/') == std::string::npos, after)) return -1;
      rest = std::move(after);
    }
  }

 private:
  // One name further. Of a link, `after` becomes what it says and what comes after it.
  bool step(const std::string& name, bool makes, std::string& after) {
    if (name == ".") return true;
    if (name == "..") return refuse(shown_ + "/..: a path with '..' is not taken");
    const std::string shown = shown_ + "/" + name;
    struct stat about{};
    if (fstatat(here_.get(), name.c_str(), &about, AT_SYMLINK_NOFOLLOW) != 0) {
      if (errno != ENOENT || !makes) return refuse(failed("find", shown));
      if (mkdirat(here_.get(), name.c_str(), 0700) != 0) return refuse(failed("make", shown));
    }
    os::Descriptor found(openat(here_.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (found.get() < 0 || fstat(found.get(), &about) != 0) return refuse(failed("open", shown));
    if (is_strict_) {
      if (std::string why = error_in_owner(shown, about); !why.empty()) return refuse(why);
    }
    if (S_ISLNK(about.st_mode)) return follow(found.get(), shown, after);
    const int folder = openat(found.get(), ".", kFolder);
    if (folder < 0) return refuse(failed("open", shown));
    here_.reset(folder);
    shown_ = shown;
    return true;
  }

  bool follow(int link, const std::string& shown, std::string& after) {
    char target[PATH_MAX];
    const ssize_t size = readlinkat(link, "", target, sizeof target);
    if (size <= 0 || ++links_ > kMaxLinks) return refuse(failed("read the link", shown));
    after = std::string(target, static_cast<std::size_t>(size)) + after;
    if (target[0] != '/') return true;
    here_.reset(open("/", kFolder));
    shown_.clear();
    return here_.get() >= 0 || refuse(failed("open", "/"));
  }

  bool refuse(std::string why) {
    why_ = std::move(why);
    return false;
  }

  std::string& why_;
  os::Descriptor here_;
  const bool is_strict_;
  std::string shown_;
  int links_ = 0;
};

// Refuses the folder unless it is ours and only we can write to it; then sets whether the readers
// may read it.
std::string take_hold(int folder, const std::string& shown, std::int64_t reader_gid) {
  struct stat about{};
  if (fstat(folder, &about) != 0) return failed("look at", shown);
  if (about.st_uid != geteuid()) {
    return shown + " belongs to user " + std::to_string(about.st_uid) + ", not to user " +
           std::to_string(geteuid()) + ": move it away, or name another folder";
  }
  const bool is_shared = reader_gid >= 0;
  // Set-group-id: what is made inside belongs to the readers too.
  const mode_t mode = is_shared ? 02750 : 0700;
  if (is_shared && about.st_gid != static_cast<gid_t>(reader_gid) &&
      fchown(folder, static_cast<uid_t>(-1), static_cast<gid_t>(reader_gid)) != 0) {
    return failed("share", shown);
  }
  if ((about.st_mode & 07777) != mode && fchmod(folder, mode) != 0) return failed("share", shown);
  return {};
}

std::string open_one(const NodeFolders& folders, const char* name, std::int64_t reader_gid,
                     int& fd) {
  const std::string shown = folders.path + "/" + name;
  if (mkdirat(folders.root, name, 0700) != 0 && errno != EEXIST) return failed("make", shown);
  fd = open_below(folders.root, name, O_RDONLY | O_DIRECTORY);
  if (fd < 0) return failed("open", shown);
  return take_hold(fd, shown, reader_gid);
}

}  // namespace

std::string open_node_folders(const std::string& path, std::int64_t reader_gid,
                              NodeFolders& folders) {
  std::string why;
  folders.path = path;
  folders.root = Walk(why).go(path, true);
  if (folders.root < 0) return why;
  why = take_hold(folders.root, path, reader_gid);
  if (why.empty()) why = open_one(folders, "attempts", reader_gid, folders.attempts);
  if (why.empty()) why = open_one(folders, "output", reader_gid, folders.output);
  if (why.empty()) why = open_one(folders, "run", -1, folders.run);
  if (why.empty()) why = open_one(folders, "tmp", -1, folders.tmp);
  return why;
}

int open_trusted_parent(const std::string& path, std::string& why) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) {
    why = "'" + path + "' is not an absolute path";
    return -1;
  }
  return Walk(why).go(path.substr(0, slash + 1), false);
}

int open_below(int folder, const char* name, int flags, unsigned mode) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags | O_NOFOLLOW | O_CLOEXEC);
  how.mode = mode;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  return static_cast<int>(syscall(SYS_openat2, folder, name, &how, sizeof how));
}

int make_folder_below(int folder, const char* name) {
  int fd = open_below(folder, name, O_RDONLY | O_DIRECTORY);
  if (fd >= 0 || errno != ENOENT) return fd;
  struct stat above{};
  if (fstat(folder, &above) != 0) return -1;
  const mode_t mode = (above.st_mode & S_IRGRP) != 0 ? 0750 : 0700;
  if (mkdirat(folder, name, mode) != 0 && errno != EEXIST) return -1;
  return open_below(folder, name, O_RDONLY | O_DIRECTORY);
}

}  // namespace gpu_platform::node
