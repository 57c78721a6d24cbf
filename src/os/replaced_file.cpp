#include "os/replaced_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "os/descriptor.h"

namespace gpu_platform::os {
namespace {

// False with errno.
bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

bool write_durably(const std::string& path, std::string_view text, mode_t mode) {
  ::unlink(path.c_str());  // left by a caller that was killed
  const Descriptor fd(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode));
  return fd.is_open() && write_all(fd.get(), text) && ::fsync(fd.get()) == 0;
}

bool sync_folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const Descriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return fd.is_open() && ::fsync(fd.get()) == 0;
}

}  // namespace

base::Status replace_file(const std::string& path, std::string_view text, mode_t mode) {
  const std::string fresh = path + ".new";
  const bool is_kept = write_durably(fresh, text, mode) &&
                       ::rename(fresh.c_str(), path.c_str()) == 0 && sync_folder_of(path);
  if (is_kept) return {};
  const int error = errno;
  ::unlink(fresh.c_str());
  return std::unexpected(base::system_error("write " + path, error));
}

}  // namespace gpu_platform::os
