#include "node/relay/channel_input.h"

#include <errno.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include <utility>

#include "model/channel.h"

namespace gpu_platform::node {

void ChannelInput::begin(const OpenedChannel& opened) {
  fd_ = opened.input;
  if (opened.start.port != 0) {
    kind_ = Kind::kConnection;
  } else if (opened.start.terminal) {
    kind_ = opened.request.container.is_given() ? Kind::kContainerTerminal : Kind::kTerminal;
  }
}

bool ChannelInput::take(std::string_view bytes) {
  if (has_end_ || waiting_.size() + bytes.size() > model::kInputWindow) return false;
  waiting_ += bytes;
  return true;
}

void ChannelInput::feed() {
  while (!waiting_.empty() && fd_ >= 0) {
    const ssize_t wrote = write_some();
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (wrote < 0) {
      close_input();
      break;
    }
    taken_ += static_cast<std::uint32_t>(wrote);
    waiting_.erase(0, static_cast<std::size_t>(wrote));
  }
  if (fd_ < 0) {  // no process reads it any more: dropped, so that the client need not wait
    taken_ += static_cast<std::uint32_t>(waiting_.size());
    waiting_.clear();
  } else if (has_end_ && waiting_.empty()) {
    close_input();
  }
}

std::uint32_t ChannelInput::count_taken() {
  return std::exchange(taken_, 0);
}

ssize_t ChannelInput::write_some() const {
  if (kind_ == Kind::kConnection) {
    return ::send(fd_, waiting_.data(), waiting_.size(), MSG_NOSIGNAL);
  }
  return write(fd_, waiting_.data(), waiting_.size());
}

// A terminal is not closed while its output is read: the key for the end of input ends it.
void ChannelInput::close_input() {
  const bool is_terminal =
      kind_ == Kind::kTerminal || (kind_ == Kind::kContainerTerminal && has_end_);
  if (kind_ == Kind::kConnection) {
    shutdown(fd_, SHUT_WR);
  } else if (!is_terminal) {
    close(fd_);
  } else if (has_end_) {
    waiting_.clear();
    termios modes{};
    const bool is_known = tcgetattr(fd_, &modes) == 0;
    const char end = static_cast<char>(is_known ? modes.c_cc[VEOF] : 4);
    [[maybe_unused]] const ssize_t wrote = write(fd_, &end, 1);
  }
  fd_ = -1;
}

}  // namespace gpu_platform::node
