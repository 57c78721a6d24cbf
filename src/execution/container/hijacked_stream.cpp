#include "execution/container/hijacked_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

namespace gpu_platform::execution {

namespace {

constexpr int kTurns = 16;  // of output, before anything else is looked at
constexpr std::size_t kPiece = 32 * 1024;

bool comes_later(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

// A pipe is opened anew: others may have the same one, and expect that it blocks.
void never_block(int fd, int access) {
  struct stat about{};
  if (fstat(fd, &about) != 0) return;
  if (S_ISFIFO(about.st_mode)) {
    const std::string path = "/proc/self/fd/" + std::to_string(fd);
    const os::Descriptor own(open(path.c_str(), access | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (own.is_open()) dup2(own.get(), fd);
  } else if (S_ISCHR(about.st_mode)) {
    const int flags = fcntl(fd, F_GETFL);
    if (flags >= 0) fcntl(fd, F_SETFL, flags | O_NONBLOCK);
  }
}

}  // namespace

HijackedStream::HijackedStream(http::RawStream engine, const Ends& ends)
    : ends_(ends), engine_(std::move(engine.socket)), unparsed_(std::move(engine.early)) {
  if (ends_.input >= 0) never_block(ends_.input, O_RDONLY);
  for (const int fd : {1, 2}) never_block(fd, O_WRONLY);
}

bool HijackedStream::wants_input() const {
  return may_read_input_ && ends_.input >= 0 && !input_has_ended_ && to_engine_.empty();
}

void HijackedStream::watch(pollfd* handles) const {
  const bool reads = !engine_has_ended_ && pending_.empty();
  const auto events = static_cast<short>((reads ? POLLIN : 0) | (to_engine_.empty() ? 0 : POLLOUT));
  handles[0] = {events == 0 ? -1 : engine_.get(), events, 0};
  handles[1] = {wants_input() ? ends_.input : -1, POLLIN, 0};
  handles[2] = {pending_.empty() ? -1 : pending_fd_, POLLOUT, 0};
}

void HijackedStream::work() {
  feed_input();
  pass_output();
}

// ---- to the engine

void HijackedStream::feed_input() {
  if (wants_input()) read_input();
  while (!to_engine_.empty()) {
    const ssize_t sent = send(engine_.get(), to_engine_.data(), to_engine_.size(), MSG_NOSIGNAL);
    if (sent < 0 && comes_later(errno)) return;
    if (sent < 0) {  // nothing reads it any more
      to_engine_.clear();
      input_has_ended_ = is_half_closed_ = true;
      return;
    }
    to_engine_.erase(0, static_cast<std::size_t>(sent));
  }
  if (!input_has_ended_ || is_half_closed_) return;
  is_half_closed_ = true;
  shutdown(engine_.get(), SHUT_WR);
}

void HijackedStream::read_input() {
  char buffer[kPiece];
  const ssize_t got = read(ends_.input, buffer, sizeof buffer);
  if (got > 0) {
    to_engine_.assign(buffer, static_cast<std::size_t>(got));
  } else if (got == 0 || !comes_later(errno)) {
    input_has_ended_ = true;
  }
}

// ---- from the engine

void HijackedStream::pass_output() {
  for (int turn = 0; turn < kTurns; ++turn) {
    if (!write_pending()) return;
    if (!unparsed_.empty()) {
      next_piece();
    } else if (!read_engine()) {
      return;
    }
  }
}

// False: its reader has not taken all of it yet.
bool HijackedStream::write_pending() {
  while (!pending_.empty()) {
    const bool is_dropped = reader_has_gone_[pending_fd_];
    const ssize_t wrote = is_dropped ? static_cast<ssize_t>(pending_.size())
                                     : write(pending_fd_, pending_.data(), pending_.size());
    if (wrote < 0 && comes_later(errno)) return false;
    if (wrote < 0) {
      reader_has_gone_[pending_fd_] = true;
    } else {
      pending_.erase(0, static_cast<std::size_t>(wrote));
    }
  }
  return true;
}

void HijackedStream::next_piece() {
  if (ends_.is_terminal) {
    pending_fd_ = 1;
    pending_ = std::exchange(unparsed_, {});
    return;
  }
  std::string_view rest = unparsed_;
  const OutputFrames::Piece piece = frames_.next(rest);
  pending_fd_ = piece.fd;
  pending_ = piece.bytes;
  unparsed_.erase(0, unparsed_.size() - rest.size());
}

// False when there is nothing now.
bool HijackedStream::read_engine() {
  if (engine_has_ended_) return false;
  char buffer[kPiece];
  const ssize_t got = recv(engine_.get(), buffer, sizeof buffer, 0);
  if (got < 0 && comes_later(errno)) return false;
  if (got <= 0) {
    engine_has_ended_ = true;
    return false;
  }
  unparsed_.assign(buffer, static_cast<std::size_t>(got));
  return true;
}

}  // namespace gpu_platform::execution
