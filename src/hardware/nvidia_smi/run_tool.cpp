#include "hardware/nvidia_smi/run_tool.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "os/child_process.h"
#include "os/clock.h"
#include "os/descriptor.h"

namespace gpu_platform::hardware {
namespace {

using base::ErrorCode;
using base::fail;
using base::Result;

// A process group of its own, so that what the program started can be killed with it.
Result<pid_t> start(const std::vector<std::string>& command, int output) {
  const auto pid = os::start_child_process(
      {.words = command, .searches_path = true, .output = output, .errors = output});
  if (pid) return *pid;
  const ErrorCode code = pid.error() == ENOENT ? ErrorCode::kNotFound : ErrorCode::kUnavailable;
  return fail(code, base::system_error("run " + command.front(), pid.error()).message);
}

// All that the program says until it closes its output; empty where a limit was passed.
Result<std::string> listen(int fd, const std::string& name, ToolLimits limits) {
  const std::int64_t until = os::monotonic_ns() + limits.time.value();
  std::string text;
  char buffer[4096];
  while (true) {
    const std::int64_t left_ms = (until - os::monotonic_ns() + 999'999) / 1'000'000;
    pollfd wanted{fd, POLLIN, 0};
    const int ready = ::poll(&wanted, 1, static_cast<int>(std::max<std::int64_t>(left_ms, 0)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) {
      return fail(ErrorCode::kUnavailable, fmt::format("{} did not answer within {} ms", name,
                                                       base::whole_milliseconds(limits.time)));
    }
    const ssize_t size = ::read(fd, buffer, sizeof buffer);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return text;
    text.append(buffer, static_cast<std::size_t>(size));
    if (text.size() > limits.output_bytes) {
      return fail(ErrorCode::kDataLoss,
                  fmt::format("{} printed more than {} bytes", name, limits.output_bytes));
    }
  }
}

// A killed process that is stuck in the driver is given a second and then left: init reaps it after
// us.
int wait_for(pid_t pid, bool is_killed) {
  if (is_killed) {
    // The call is made by its number, because Debian 12's <sys/pidfd.h> declares the function
    // without C linkage.
    const os::Descriptor end(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    pollfd wanted{end.get(), POLLIN, 0};
    (void)::poll(&wanted, 1, 1000);
  }
  int status = 0;
  while (::waitpid(pid, &status, is_killed ? WNOHANG : 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace

Result<ToolOutput> run_tool(const std::vector<std::string>& command, ToolLimits limits) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return std::unexpected(base::system_error("pipe", errno));
  const os::Descriptor from(ends[0]);
  os::Descriptor to(ends[1]);
  TRY_ASSIGN(const pid_t pid, start(command, to.get()));
  to.reset();
  auto text = listen(from.get(), command.front(), limits);
  if (!text) ::kill(-pid, SIGKILL);
  const int status = wait_for(pid, !text);
  if (!text) return std::unexpected(std::move(text).error());
  if (!WIFEXITED(status)) {
    return fail(ErrorCode::kUnavailable,
                fmt::format("{} was ended by signal {}", command.front(), WTERMSIG(status)));
  }
  return ToolOutput{WEXITSTATUS(status), std::move(*text)};
}

}  // namespace gpu_platform::hardware
