#include "node/probe/probe_child.h"
#include "os/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include <fmt/format.h>

namespace gpu_platform::node {
namespace {

using base::system_error;

std::string_view key_of(std::string_view assignment) {
  return assignment.substr(0, assignment.find('='));
}

// Ours, where the target does not say otherwise.
std::vector<std::string> environment_of(const ProbeTarget& target) {
  std::vector<std::string> all = target.environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const bool is_overridden = std::ranges::any_of(
        target.environment, [&](const std::string& own) { return key_of(own) == key_of(*entry); });
    if (!is_overridden) all.emplace_back(*entry);
  }
  return all;
}

}  // namespace

base::Result<ProbeChild> spawn_probe(const ProbeRunnerOptions& options, const ProbeTarget& target) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
    return std::unexpected(system_error("socketpair", errno));
  }
  ProbeChild child;
  child.socket = os::Descriptor(pair[0]);
  const os::Descriptor theirs(pair[1]);
  std::vector<std::string> arguments{options.executable,
                                     "--library",
                                     target.library,
                                     "--fd",
                                     fmt::format("{}", os::kChildLink),
                                     "--interval-ms",
                                     fmt::format("{}", base::whole_milliseconds(options.interval))};
  if (!target.host_description.empty()) {
    arguments.insert(arguments.end(), {"--host-description", target.host_description});
  }
  if (!target.nvidia_smi.empty()) {
    arguments.insert(arguments.end(), {"--nvidia-smi", target.nvidia_smi});
  }
  if (!target.kernel_log.empty()) {
    arguments.insert(arguments.end(), {"--kernel-log", target.kernel_log});
  }
  if (!options.data_folder.empty()) {
    arguments.insert(arguments.end(), {"--data-folder", options.data_folder});
  }
  for (const std::string& library : target.dcgm.libraries) {
    arguments.insert(arguments.end(), {"--dcgm", library});
  }
  if (!target.dcgm.address.empty()) {
    arguments.insert(arguments.end(), {"--dcgm-address", target.dcgm.address});
  }
  const auto pid = os::start_child_process(
      {.words = std::move(arguments), .environment = environment_of(target), .link = theirs.get()});
  if (!pid) return std::unexpected(system_error("start " + options.executable, pid.error()));
  child.pid = *pid;
  // The call is made by its number, because Debian 12's <sys/pidfd.h> declares the function without
  // C linkage.
  child.pidfd = os::Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, child.pid, 0)));
  if (child.pidfd.is_open()) return child;
  const int open_error = errno;
  ::kill(child.pid, SIGKILL);
  ::waitpid(child.pid, nullptr, 0);
  return std::unexpected(system_error("pidfd_open", open_error));
}

std::string reap(const ProbeChild& child) {
  siginfo_t info{};
  const int result = ::waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(child.pidfd.get()),
                              &info, WEXITED | WNOHANG);
  if (result != 0) return errno == EINTR ? "" : "ended";  // another wait reaped it
  if (info.si_pid == 0) return {};
  if (info.si_code == CLD_EXITED) return fmt::format("ended with exit code {}", info.si_status);
  const char* name = sigabbrev_np(info.si_status);
  return fmt::format("ended by SIG{}", name == nullptr ? "?" : name);
}

}  // namespace gpu_platform::node
