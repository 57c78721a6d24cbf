#include "os/small_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

namespace gpu_platform::os {

std::string read_small_file(int dir, const char* path) {
  constexpr std::size_t kMax = 1024 * 1024;
  std::string text;
  const int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return text;
  char buffer[4096];
  while (text.size() < kMax) {
    const ssize_t got = read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(buffer, static_cast<std::size_t>(got));
  }
  close(fd);
  return text;
}

bool write_small_file(int dir, const char* path, std::string_view text) {
  const int fd = openat(dir, path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t wrote = write(fd, text.data(), text.size());
  const int error = errno;
  close(fd);
  errno = error;
  return wrote == static_cast<ssize_t>(text.size());
}

long long number_after(std::string_view text, std::string_view key) {
  std::size_t at = 0;
  while (at < text.size()) {
    std::size_t end = text.find('\n', at);
    if (end == std::string_view::npos) end = text.size();
    std::string_view line = text.substr(at, end - at);
    if (line.size() > key.size() && line.starts_with(key) && line[key.size()] == ' ') {
      long long value = 0;
      for (const char c : line.substr(key.size() + 1)) {
        if (c < '0' || c > '9') break;
        value = value * 10 + (c - '0');
      }
      return value;
    }
    at = end + 1;
  }
  return -1;
}

}  // namespace gpu_platform::os
