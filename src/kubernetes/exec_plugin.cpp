#include "kubernetes/exec_plugin.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "kubernetes/text_file.h"
#include "os/child_process.h"
#include "os/clock.h"

namespace gpu_platform::kubernetes {
namespace {

using base::Result;
using base::Status;

constexpr std::size_t kMaxErrorOutput = 4096;

Status make_pipe(os::Descriptor& from, os::Descriptor& to) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return std::unexpected(base::system_error("pipe", errno));
  from.reset(ends[0]);
  to.reset(ends[1]);
  // Our end alone: the program's would surprise it.
  if (::fcntl(from.get(), F_SETFL, O_NONBLOCK) != 0) {
    return std::unexpected(base::system_error("pipe", errno));
  }
  return {};
}

// Our own environment with the plugin's variables in front of it.
std::vector<std::string> environment(const ExecPlugin& plugin, const std::string& info) {
  std::vector<std::string> variables = {"KUBERNETES_EXEC_INFO=" + info};
  std::set<std::string, std::less<>> names = {"KUBERNETES_EXEC_INFO"};
  for (const auto& [name, value] : plugin.env) {
    if (names.insert(name).second) variables.push_back(fmt::format("{}={}", name, value));
  }
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string_view variable = *at;
    if (!names.contains(variable.substr(0, variable.find('=')))) variables.emplace_back(variable);
  }
  return variables;
}

// The error is an errno.
std::expected<pid_t, int> start_plugin(const ExecPlugin& plugin, const std::string& info,
                                       int output, int errors) {
  std::vector<std::string> words = {plugin.command};
  words.insert(words.end(), plugin.args.begin(), plugin.args.end());
  return os::start_child_process({.words = std::move(words),
                                  .searches_path = true,
                                  .environment = environment(plugin, info),
                                  .output = output,
                                  .errors = errors});
}

// Reads what is there. Closes the descriptor at the end of it.
void drain(os::Descriptor& from, std::string& into, std::size_t limit) {
  char buffer[4096];
  while (from.is_open() && into.size() <= limit) {
    const ssize_t size = ::read(from.get(), buffer, sizeof buffer);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) return;
    if (size <= 0) return from.reset();
    into.append(buffer, static_cast<std::size_t>(size));
  }
}

// Reads what is there and keeps the end of it.
void drain_end(os::Descriptor& from, std::string& into, std::size_t limit) {
  // A program that never stops writing must not hold us up.
  for (int rounds = 0; rounds < 16 && from.is_open(); ++rounds) {
    std::string piece;
    drain(from, piece, limit);
    if (piece.empty()) return;
    into += piece;
    if (into.size() > limit) into.erase(0, into.size() - limit);
  }
}

}  // namespace

ExecRun::ExecRun(const ExecPlugin& plugin, ExecLimits limits)
    : command_(plugin.command), hint_(plugin.install_hint), limits_(limits) {}

Result<std::unique_ptr<ExecRun>> ExecRun::start(const ExecPlugin& plugin, const std::string& info,
                                                ExecLimits limits) {
  std::unique_ptr<ExecRun> run(new ExecRun(plugin, limits));
  os::Descriptor output;
  os::Descriptor errors;
  TRY(make_pipe(run->output_, output));
  TRY(make_pipe(run->errors_, errors));
  const auto pid = start_plugin(plugin, info, output.get(), errors.get());
  if (!pid) {
    const std::string hint = printable(plugin.install_hint, 1000);
    return base::fail(base::ErrorCode::kUnavailable,
                      fmt::format("the program '{}' for the credentials cannot be run: {}{}{}",
                                  printable(plugin.command), std::strerror(pid.error()),
                                  hint.empty() ? "" : ". ", hint));
  }
  run->pid_ = *pid;
  // By its number, because Debian 12's <sys/pidfd.h> declares the function without C linkage.
  run->ended_.reset(static_cast<int>(::syscall(SYS_pidfd_open, run->pid_, 0)));
  if (!run->ended_.is_open()) return std::unexpected(base::system_error("pidfd_open", errno));
  run->deadline_ns_ = os::monotonic_ns() + limits.time.value();
  return run;
}

ExecRun::~ExecRun() {
  if (pid_ < 0) return;
  ::kill(-pid_, SIGKILL);
  // It ends at once, unless it is stuck in the kernel; then it is left, and init reaps it after us.
  pollfd wanted{ended_.get(), POLLIN, 0};
  (void)::poll(&wanted, 1, ended_.is_open() ? 1000 : 0);
  ::waitpid(pid_, nullptr, WNOHANG);
}

std::array<int, 3> ExecRun::descriptors() const {
  return {ended_.get(), output_.get(), errors_.get()};
}

std::unexpected<base::Error> ExecRun::failure(std::string_view what) const {
  const std::string said = printable(error_output_);
  return base::fail(base::ErrorCode::kUnauthenticated,
                    fmt::format("the program '{}' for the credentials {}{}{}", printable(command_),
                                what, said.empty() ? "" : ": ", said));
}

Result<std::string> ExecRun::result(int status) const {
  if (WIFSIGNALED(status)) return failure(fmt::format("was ended by signal {}", WTERMSIG(status)));
  if (WEXITSTATUS(status) != 0) {
    return failure(fmt::format("ended with exit code {}", WEXITSTATUS(status)));
  }
  return text_;
}

std::optional<Result<std::string>> ExecRun::advance(std::int64_t now_ns) {
  siginfo_t end{};
  // Asked before the pipes are read: so all that it wrote is in them.
  const bool has_ended =
      ::waitid(P_PID, static_cast<id_t>(pid_), &end, WEXITED | WNOHANG | WNOWAIT) == 0 &&
      end.si_pid == pid_;
  drain(output_, text_, limits_.output_bytes);
  drain_end(errors_, error_output_, kMaxErrorOutput);
  int status = 0;
  if (has_ended) {
    ::kill(-pid_, SIGKILL);  // what it has left behind; the number is ours until it is reaped
    ::waitpid(std::exchange(pid_, -1), &status, 0);
  }
  if (text_.size() > limits_.output_bytes) {
    return failure(fmt::format("printed more than {} bytes", limits_.output_bytes));
  }
  if (has_ended) return result(status);
  if (now_ns >= deadline_ns_) {
    return failure(
        fmt::format("did not end within {} s", base::whole_milliseconds(limits_.time) / 1000));
  }
  return std::nullopt;
}

}  // namespace gpu_platform::kubernetes
