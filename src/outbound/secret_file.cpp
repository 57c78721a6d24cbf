#include "outbound/secret_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include <fmt/format.h>

#include "os/descriptor.h"

namespace gpu_platform::outbound {

namespace {

constexpr std::size_t kMaxBytes = 64UL * 1024;

base::Status check_owner(const std::string& path, int fd) {
  struct stat found{};
  if (fstat(fd, &found) != 0) return std::unexpected(base::system_error(path, errno));
  if (!S_ISREG(found.st_mode)) {
    return base::fail(base::ErrorCode::kFailedPrecondition, path + " is no regular file");
  }
  if (found.st_uid != 0 && found.st_uid != geteuid()) {
    return base::fail(
        base::ErrorCode::kFailedPrecondition,
        fmt::format("{} belongs to user id {}; a secret must belong to root or to the user of the "
                    "daemon",
                    path, found.st_uid));
  }
  if ((found.st_mode & S_IRWXO) != 0) {
    return base::fail(base::ErrorCode::kFailedPrecondition,
                      fmt::format("{} is open to all users (mode {:04o}); chmod 0600 {}", path,
                                  found.st_mode & 07777, path));
  }
  return {};
}

}  // namespace

base::Result<std::string> read_secret(const std::string& path) {
  const os::Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!file.is_open()) return std::unexpected(base::system_error(path, errno));
  TRY(check_owner(path, file.get()));
  std::string text(kMaxBytes + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = read(file.get(), text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::unexpected(base::system_error(path, errno));
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  if (size > kMaxBytes) {
    return base::fail(base::ErrorCode::kFailedPrecondition, path + " is too large for a secret");
  }
  text.resize(size);
  constexpr const char* kBlanks = " \t\r\n";
  text.erase(0, text.find_first_not_of(kBlanks));  // npos: all of it
  text.erase(text.find_last_not_of(kBlanks) + 1);
  if (text.empty()) {
    return base::fail(base::ErrorCode::kFailedPrecondition, path + " is empty");
  }
  return text;
}

}  // namespace gpu_platform::outbound
