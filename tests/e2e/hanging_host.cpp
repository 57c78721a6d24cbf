// Preloaded into the daemon by tests: a host whose user database and file server hang, as a
// directory behind a dead network does. While the file $GP_HANGS/users/NAME (a user id or a name)
// is there, calls that ask for that user do not come back; while $GP_HANGS/disk-hangs is there,
// neither do calls that open, read or watch something below $GP_HANGS/disk. Each of them leaves a
// file $GP_HANGS/seen-NAME or seen-disk first.

#include <dlfcn.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdarg.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

std::string folder() {
  const char* const path = std::getenv("GP_HANGS");
  return path != nullptr ? path : "";
}

using Open = int (*)(const char*, int, ...);

Open real_open(const char* name) {
  return reinterpret_cast<Open>(dlsym(RTLD_NEXT, name));
}

void hang_while_there(const std::string& flag, const std::string& what) {
  if (access(flag.c_str(), F_OK) != 0) return;
  static const Open open_file = real_open("open");
  const int seen =
      open_file((folder() + "/seen-" + what).c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
  if (seen >= 0) close(seen);
  const timespec pause{0, 20'000'000};
  while (access(flag.c_str(), F_OK) == 0) nanosleep(&pause, nullptr);
}

void hang_for_user(const std::string& who) {
  if (!folder().empty()) hang_while_there(folder() + "/users/" + who, who);
}

// Without an allocation for other paths: allocators open files when they begin.
void hang_for_path(const char* path) {
  const char* const root = std::getenv("GP_HANGS");
  if (root == nullptr || path == nullptr) return;
  const std::size_t length = std::strlen(root);
  if (std::strncmp(path, root, length) != 0) return;
  if (std::strncmp(path + length, "/disk/", 5) == 0)
    hang_while_there(folder() + "/disk-hangs", "disk");
}

void hang_for_file(int fd) {
  if (std::getenv("GP_HANGS") == nullptr) return;
  char link[64];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  char path[4096];
  const ssize_t size = readlink(link, path, sizeof path - 1);
  if (size <= 0) return;
  path[size] = 0;
  hang_for_path(path);
}

int open_after_hanging(const char* name, const char* path, int flags, va_list more) {
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
  hang_for_path(path);
  return real_open(name)(path, flags, mode);
}

}  // namespace

extern "C" {

int getpwuid_r(uid_t uid, passwd* entry, char* buffer, size_t size, passwd** found) {
  using Function = int (*)(uid_t, passwd*, char*, size_t, passwd**);
  static const auto real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "getpwuid_r"));
  hang_for_user(std::to_string(uid));
  return real(uid, entry, buffer, size, found);
}

int getpwnam_r(const char* name, passwd* entry, char* buffer, size_t size, passwd** found) {
  using Function = int (*)(const char*, passwd*, char*, size_t, passwd**);
  static const auto real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "getpwnam_r"));
  hang_for_user(name);
  return real(name, entry, buffer, size, found);
}

int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const int file = open_after_hanging("open", path, flags, more);
  va_end(more);
  return file;
}

int open64(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const int file = open_after_hanging("open64", path, flags, more);
  va_end(more);
  return file;
}

ssize_t pread(int fd, void* bytes, size_t size, off_t offset) {
  using Function = ssize_t (*)(int, void*, size_t, off_t);
  static const auto real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "pread"));
  hang_for_file(fd);
  return real(fd, bytes, size, offset);
}

ssize_t pread64(int fd, void* bytes, size_t size, off64_t offset) {
  using Function = ssize_t (*)(int, void*, size_t, off64_t);
  static const auto real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "pread64"));
  hang_for_file(fd);
  return real(fd, bytes, size, offset);
}

int inotify_add_watch(int fd, const char* path, uint32_t mask) {
  using Function = int (*)(int, const char*, uint32_t);
  static const auto real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "inotify_add_watch"));
  hang_for_path(path);
  return real(fd, path, mask);
}

}  // extern "C"
