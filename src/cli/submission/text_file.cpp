#include "cli/submission/text_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "os/descriptor.h"

namespace gpu_platform::cli {

base::Result<std::string> read_text_file(const ProcessEnvironment& process_environment,
                                         const std::string& file, std::size_t max_bytes) {
  const auto failed = [] {
    return base::invalid({}, fmt::format("it cannot be read: {}", std::strerror(errno)));
  };
  os::Descriptor opened;
  int fd = process_environment.in_fd;
  if (file != "-") {
    const std::string path =
        file.starts_with('/') ? file : process_environment.directory + "/" + file;
    opened.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!opened.is_open()) return failed();
    fd = opened.get();
  }
  std::string text;
  char buffer[65536];
  while (true) {
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed();
    if (got == 0) return text;
    text.append(buffer, static_cast<std::size_t>(got));
    if (text.size() > max_bytes) {
      return base::invalid({}, fmt::format("it is larger than {} KiB", max_bytes / 1024));
    }
  }
}

}  // namespace gpu_platform::cli
