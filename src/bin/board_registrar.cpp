#include "bin/board_registrar.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "os/child_process.h"

namespace gpu_platform::bin {

BoardRegistrar::~BoardRegistrar() {
  stop();
}

void BoardRegistrar::enter(const std::string& node, const std::vector<std::string>& uuids,
                           std::uint32_t pid) {
  if (pipe_ < 0 && !start()) return;
  const std::string line =
      fmt::format("enter {}/{}/state {} {}\n", boards_, node, fmt::join(uuids, ","), pid);
  // At most a page, so that it is written whole or not at all.
  if (line.size() > 4096) return;
  const ssize_t wrote = write(pipe_, line.data(), line.size());
  if (wrote < 0 && errno == EPIPE) stop();
}

bool BoardRegistrar::start() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  const auto child = os::start_child_process({.words = {program_, "follow"}, .input = ends[0]});
  close(ends[0]);
  child_ = child.value_or(-1);
  if (!child || fcntl(ends[1], F_SETFL, O_NONBLOCK) != 0) {
    close(ends[1]);
    return false;
  }
  pipe_ = ends[1];
  return true;
}

// It ends when its lines do.
void BoardRegistrar::stop() {
  if (pipe_ >= 0) close(pipe_);
  pipe_ = -1;
  while (child_ > 0 && waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
  }
  child_ = -1;
}

}  // namespace gpu_platform::bin
