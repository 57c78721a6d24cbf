#include "execution/process/launcher_link.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <vector>

#include <fmt/format.h>

#include "node/syscalls.h"
#include "os/child_process.h"
#include "os/packet_socket.h"

namespace gpu_platform::execution {

namespace {

constexpr int kEndTimeoutMs = 500;

void append_hook(std::vector<std::string>& arguments, const std::string& option,
                 const std::string& file, std::uint64_t timeout_ms) {
  if (file.empty()) return;
  const std::uint64_t seconds = (timeout_ms + 999) / 1000;
  arguments.insert(arguments.end(),
                   {option, file, option + "-timeout", fmt::format("{}s", seconds)});
}

}  // namespace

base::Status LauncherLink::connect() {
  hang_up();
  TRY(options_.socket.empty() ? spawn() : dial());
  if (send(node::Hello{}) == Sent::kYes) return {};
  hang_up();
  return base::fail(base::ErrorCode::kUnavailable, "the launcher hung up at once");
}

base::Status LauncherLink::spawn() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
    return std::unexpected(base::system_error("make a socket for the launcher", errno));
  }
  os::Descriptor ours(ends[0]);
  os::Descriptor theirs(ends[1]);
  // Only our end must not block; the launcher waits in receive.
  if (fcntl(theirs.get(), F_SETFL, 0) != 0) {
    return std::unexpected(base::system_error("prepare the launcher's socket", errno));
  }
  std::string socket_number = fmt::format("{}", os::kChildLink);
  const auto allowed = [](bool is_allowed) { return is_allowed ? "allow" : "refuse"; };
  std::vector<std::string> arguments{"gpu-platform-node",
                                     "launcher",
                                     "--root",
                                     options_.folder,
                                     "--socket-fd",
                                     socket_number,
                                     "--root-jobs",
                                     allowed(options_.rules.allow_root),
                                     "--min-uid",
                                     fmt::format("{}", options_.rules.users.min_uid),
                                     "--max-uid",
                                     fmt::format("{}", options_.rules.users.max_uid),
                                     "--mode-setting",
                                     allowed(options_.rules.mode_setting)};
  const node::SiteHooks& hooks = options_.hooks;
  append_hook(arguments, "--prolog", hooks.prolog, hooks.prolog_timeout_ms);
  append_hook(arguments, "--epilog", hooks.epilog, hooks.epilog_timeout_ms);
  if (!options_.containers.empty()) {
    arguments.insert(arguments.end(), {"--containers", options_.containers});
  }
  if (!options_.rules.filter_syscalls) arguments.insert(arguments.end(), {"--seccomp", "off"});
  // A session of its own: Ctrl-C at the daemon's terminal is not meant for jobs.
  const auto child = os::start_child_process({.words = std::move(arguments),
                                              .file = options_.program,
                                              .environment = std::vector<std::string>(),
                                              .input = os::kShared,
                                              .output = os::kShared,
                                              .link = theirs.get(),
                                              .leads_session = true});
  if (!child) {
    return std::unexpected(base::system_error("start " + options_.program, child.error()));
  }
  child_ = *child;
  socket_ = std::move(ours);
  return {};
}

base::Status LauncherLink::dial() {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (options_.socket.size() >= sizeof address.sun_path) {
    return base::invalid("--launcher", "the path is too long for a socket");
  }
  memcpy(address.sun_path, options_.socket.data(), options_.socket.size());
  os::Descriptor dialled(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!dialled.is_open() ||
      ::connect(dialled.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    return std::unexpected(
        base::system_error("connect to the launcher at " + options_.socket, errno));
  }
  socket_ = std::move(dialled);
  return {};
}

void LauncherLink::hang_up() {
  socket_.reset();
  if (child_ <= 0) return;
  // It ends by itself when it finds the socket closed; this is for one that hangs. It is our child
  // and not waited for yet, so the pid is its own.
  const os::Descriptor handle(node::open_pidfd(child_));
  pollfd ended{handle.get(), POLLIN, 0};
  if (!handle.is_open() || poll(&ended, 1, kEndTimeoutMs) != 1) kill(child_, SIGKILL);
  while (waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
  }
  child_ = -1;
}

LauncherLink::Sent LauncherLink::send(const node::Message& message, int fd) {
  if (!socket_.is_open()) return Sent::kBroken;
  if (os::send_packet(socket_.get(), node::encode(message), fd)) return Sent::kYes;
  return errno == EAGAIN || errno == ENOBUFS ? Sent::kNotNow : Sent::kBroken;
}

LauncherLink::Received LauncherLink::receive() {
  Received received;
  if (!socket_.is_open()) return received;
  const os::Packet packet = os::receive_packet(socket_.get(), buffer_, sizeof buffer_);
  received.fd = os::Descriptor(packet.fd);
  if (packet.kind == os::Packet::Kind::kMessage) received.message = node::decode(packet.bytes);
  // A launcher that sends what we do not know is as good as gone.
  received.closed = packet.kind == os::Packet::Kind::kClosed ||
                    (packet.kind == os::Packet::Kind::kMessage && !received.message);
  return received;
}

}  // namespace gpu_platform::execution
