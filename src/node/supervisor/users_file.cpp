#include "node/supervisor/users_file.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "node/raw_call.h"
#include "os/named_file.h"

namespace gpu_platform::node {

namespace {

constexpr unsigned kNullMajor = 1;
constexpr unsigned kNullMinor = 3;

// Why a file of this kind is not taken; null when it is.
const char* error_in_kind(const struct stat& about) {
  if (S_ISREG(about.st_mode) || S_ISFIFO(about.st_mode)) return nullptr;
  if (S_ISCHR(about.st_mode)) {
    const bool is_null = major(about.st_rdev) == kNullMajor && minor(about.st_rdev) == kNullMinor;
    return is_null ? nullptr : "it is a device; the only device that takes output is /dev/null";
  }
  if (S_ISBLK(about.st_mode))
    return "it is a device; the only device that takes output is /dev/null";
  if (S_ISSOCK(about.st_mode)) return "it is a socket";
  return "it is not a regular file";
}

// open() answers the same for several of them.
const char* meaning_of(int error, const char* path) {
  struct stat about;
  if (error == EAGAIN) return "another process has a lease on it";
  if (error == ELOOP) return "its path leads in a circle, or through a descriptor of a process";
  if (error != ENXIO || raw_stat_at(path, about) != 0) return nullptr;
  if (S_ISFIFO(about.st_mode)) return "it is a FIFO without a reader";
  return error_in_kind(about);
}

UsersFile refused(int fd, int error, const char* why) {
  if (fd >= 0) raw_close(fd);
  return {-1, error, why};
}

}  // namespace

UsersFile open_users_file(const char* path, bool truncates) {
  const int fd = os::open_named_file(path, O_WRONLY | O_CREAT | O_APPEND, 0666);
  if (fd < 0) return refused(fd, errno, meaning_of(errno, path));
  struct stat about;
  if (const int got = raw_stat_of(fd, about); got != 0) return refused(fd, -got, nullptr);
  if (const char* why = error_in_kind(about)) return refused(fd, EINVAL, why);
  // A device is where the host has it; a FIFO of a file system that holds none is of a descriptor.
  const bool is_device = S_ISCHR(about.st_mode);
  const char* const why = is_device ? nullptr : os::error_in_place(fd);
  if (why != nullptr) return refused(fd, EINVAL, why);
  // Only now is it certain that it is a file of the user's.
  if (truncates && S_ISREG(about.st_mode)) {
    const long cut = raw_call(SYS_ftruncate, fd, 0);
    if (cut != 0) return refused(fd, static_cast<int>(-cut), nullptr);
  }
  // A program finds what it writes to as a shell would hand it over.
  const long set = raw_call(SYS_fcntl, fd, F_SETFL, O_WRONLY | O_APPEND | O_LARGEFILE);
  if (set != 0) return refused(fd, static_cast<int>(-set), nullptr);
  return {fd, 0, nullptr};
}

}  // namespace gpu_platform::node
