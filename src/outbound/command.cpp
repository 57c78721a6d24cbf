#include "outbound/command.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/result.h"
#include "os/child_process.h"
#include "os/clock.h"
#include "os/descriptor.h"

namespace gpu_platform::outbound {

namespace {

Outcome failed_command(std::string problem) {
  return {Outcome::Kind::kFailed, std::move(problem), {}};
}

// A file in memory: it is complete before the program starts, so that we wait for no reader.
os::Descriptor file_with(std::string_view text) {
  os::Descriptor file(memfd_create("message", MFD_CLOEXEC));
  while (file.is_open() && !text.empty()) {
    const ssize_t wrote = write(file.get(), text.data(), text.size());
    if (wrote <= 0) return {};
    text.remove_prefix(static_cast<std::size_t>(wrote));
  }
  if (file.is_open()) lseek(file.get(), 0, SEEK_SET);
  return file;
}

std::string variable(std::string_view name, std::string value) {
  std::erase(value, '\0');
  return fmt::format("{}={}", name, value);
}

enum class Seen { kEnd, kStop, kTimeout };

Seen wait_for_end(pid_t child, int stop, base::Duration timeout) {
  // The call is made by its number, because Debian 12's <sys/pidfd.h> declares the function without
  // C linkage.
  const os::Descriptor handle(static_cast<int>(syscall(SYS_pidfd_open, child, 0)));
  const std::int64_t end_ms = os::monotonic_ms() + base::whole_milliseconds(timeout);
  while (true) {
    pollfd fds[] = {{handle.get(), POLLIN, 0}, {stop, POLLIN, 0}};
    const std::int64_t left_ms = std::max<std::int64_t>(0, end_ms - os::monotonic_ms());
    const int ready = poll(fds, 2, static_cast<int>(std::min<std::int64_t>(left_ms, 60'000)));
    if (ready < 0 && errno != EINTR) return Seen::kTimeout;
    if (ready > 0) return fds[0].revents != 0 ? Seen::kEnd : Seen::kStop;
    if (ready == 0 && left_ms <= 60'000) return Seen::kTimeout;
  }
}

}  // namespace

Outcome run_command(const Channel& channel, const Delivery& delivery, int stop) {
  const os::Descriptor input = file_with(delivery.body);
  if (!input.is_open())
    return failed_command(base::system_error("a file in memory", errno).message);
  const auto child = os::start_child_process(
      {.words = channel.command,
       .environment =
           std::vector{
               variable("GPU_PLATFORM_CHANNEL", channel.name),
               variable("GPU_PLATFORM_KEY", delivery.key),
               variable("GPU_PLATFORM_SUBJECT", delivery.subject),
               std::string("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")},
       .input = input.get(),
       .output = os::kNull,
       .errors = os::kNull});
  if (!child)
    return failed_command(base::system_error(channel.command.front(), child.error()).message);
  const Seen seen = wait_for_end(*child, stop, channel.timeout);
  if (seen != Seen::kEnd) kill(-*child, SIGKILL);  // not reaped yet, so the number is its own
  int status = 0;
  while (waitpid(*child, &status, 0) < 0 && errno == EINTR) {
  }
  if (seen == Seen::kStop) return {Outcome::Kind::kStopped, "stopped", {}};
  if (seen == Seen::kTimeout) {
    return failed_command(fmt::format("the command is not done after {} s and was killed",
                                      base::whole_milliseconds(channel.timeout) / 1000));
  }
  if (WIFSIGNALED(status)) {
    return failed_command(fmt::format("the command was ended by signal {}", WTERMSIG(status)));
  }
  if (WEXITSTATUS(status) == 0) return {};
  return failed_command(fmt::format("the command ends with exit code {}", WEXITSTATUS(status)));
}

}  // namespace gpu_platform::outbound
