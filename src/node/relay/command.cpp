#include "node/relay/command.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>
#include <utility>

#include "node/terminal.h"
#include "os/clock.h"
#include "os/packet_socket.h"

namespace gpu_platform::node {

namespace {
constexpr std::int64_t kHangUpGraceMs = 5'000;
}

void Command::begin(const OpenedChannel& opened) {
  pid_ = opened.pid;
  terminal_ = opened.terminal;
  control_ = opened.control;
  in_container_ = opened.request.container.is_given();
}

void Command::reap(model::EndFrame& end) {
  int status = 0;
  if (pid_ <= 0 || waitpid(pid_, &status, WNOHANG) != pid_) return;
  const bool is_killed = WIFSIGNALED(status);
  end.end = is_killed ? model::ChannelEnd::kSignalled : model::ChannelEnd::kExited;
  end.value = static_cast<std::uint8_t>(is_killed ? WTERMSIG(status) : WEXITSTATUS(status));
  pid_ = -1;
}

// The command is not reaped yet, so its group is its own.
void Command::signal(int signal) {
  if (pid_ <= 0) return;
  if (in_container_) return tell_control(model::SignalFrame{static_cast<std::uint8_t>(signal)});
  const pid_t group = foreground_group();
  if (group <= 0) {
    kill(-pid_, signal);
    return;
  }
  // The kernel knows the group itself, not only its number, but takes none other this way.
  const bool is_key = signal == SIGINT || signal == SIGQUIT || signal == SIGTSTP;
  if (is_key && ioctl(terminal_, TIOCSIG, signal) == 0) return;
  kill(-group, signal);
  if (group != pid_ && signal == SIGHUP) kill(-pid_, signal);
}

// The terminal's, if it still is of the session that was made for the command: its number may have
// been left on the terminal by a group that is gone, and belong to another by now. 0: none.
pid_t Command::foreground_group() const {
  pid_t session = 0;
  pid_t group = 0;
  const bool is_known = terminal_ >= 0 && ioctl(terminal_, TIOCGSID, &session) == 0 &&
                        ioctl(terminal_, TIOCGPGRP, &group) == 0;
  const bool is_its_own = is_known && session == pid_ && group > 1 && getsid(group) == session;
  return is_its_own ? group : 0;
}

void Command::resize(const model::ResizeFrame& resize) const {
  if (terminal_ >= 0) resize_terminal(terminal_, resize.size);
  tell_control(resize);
}

void Command::hang_up() {
  if (pid_ <= 0 || deadline_ms_ != 0) return;
  if (in_container_) return close_control();  // the program beside it knows what that means
  signal(SIGHUP);
  signal(SIGCONT);
  deadline_ms_ = os::boot_ms() + kHangUpGraceMs;
}

void Command::kill_if_due() {
  if (deadline_ms_ == 0 || os::boot_ms() < deadline_ms_) return;
  if (pid_ > 0) kill(-pid_, SIGKILL);
  deadline_ms_ = os::boot_ms() + kHangUpGraceMs;
}

void Command::read_control(std::span<char> buffer) {
  while (control_ >= 0) {
    const os::Packet packet =
        os::receive_packet(control_, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (packet.fd >= 0) close(packet.fd);
    if (packet.kind == os::Packet::Kind::kNothing) return;
    const auto frame = packet.kind == os::Packet::Kind::kMessage ? model::decode_frame(packet.bytes)
                                                                 : std::optional<model::Frame>();
    const auto* end = frame ? std::get_if<model::EndFrame>(&*frame) : nullptr;
    if (end != nullptr) last_words_ = end->text;
    if (!frame) close_control();
  }
}

void Command::close_control() {
  if (control_ >= 0) close(std::exchange(control_, -1));
}

void Command::tell_control(const model::Frame& frame) const {
  if (control_ >= 0) os::send_packet(control_, model::encode_frame(frame));
}

}  // namespace gpu_platform::node
