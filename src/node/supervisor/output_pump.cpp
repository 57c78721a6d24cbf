#include "node/supervisor/output_pump.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "node/protocol.h"

namespace gpu_platform::node {

namespace {

constexpr std::uint64_t kMostAtOnce = 1 << 20;
constexpr std::size_t kCopyBuffer = 16 * 1024;
constexpr mode_t kFolderMode = 0750;

void close_if_open(int& fd) {
  if (fd >= 0) close(fd);
  fd = -1;
}

}  // namespace

OutputPump::OutputPump(Options options) : options_(std::move(options)) {}

OutputPump::~OutputPump() {
  close_if_open(read_end_);
  close_if_open(write_end_);
  close_if_open(file_);
}

bool OutputPump::open() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  read_end_ = ends[0];
  write_end_ = ends[1];
  // Of the read end's file description alone: the job's end stays blocking.
  return fcntl(read_end_, F_SETFL, O_NONBLOCK) == 0;
}

void OutputPump::close_write_end() {
  close_if_open(write_end_);
}

void OutputPump::pump() {
  while (read_end_ >= 0) {
    const Moved moved = move_some();
    if (moved == Moved::kEnd) close_if_open(read_end_);
    if (moved != Moved::kSome) return;
  }
}

OutputPump::Moved OutputPump::move_some() {
  if (is_at_limit()) return drop_past_limit();
  // The file is made only when there is something to put into it: a silent job leaves none.
  if (file_ < 0 || room() == 0) {
    pollfd waiting{read_end_, POLLIN, 0};
    if (poll(&waiting, 1, 0) <= 0) return Moved::kNothing;
    if ((waiting.revents & POLLIN) == 0) return Moved::kEnd;
    if (file_ >= 0) rotate();
    if (file_ < 0 && !open_file()) return drop_some(errno);
  }
  const std::uint64_t most = room() < kMostAtOnce ? room() : kMostAtOnce;
  return can_splice_ ? splice_some(most) : copy_some(most);
}

OutputPump::Moved OutputPump::splice_some(std::uint64_t most) {
  const ssize_t moved =
      splice(read_end_, nullptr, file_, nullptr, most, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  if (moved > 0) {
    size_ += static_cast<std::uint64_t>(moved);
    return Moved::kSome;
  }
  if (moved == 0) return Moved::kEnd;
  if (errno == EAGAIN) return Moved::kNothing;
  if (errno == EINVAL) {  // a file system without it
    can_splice_ = false;
    return copy_some(most);
  }
  return drop_some(errno);
}

OutputPump::Moved OutputPump::copy_some(std::uint64_t most) {
  char buffer[kCopyBuffer];
  const ssize_t got = read(read_end_, buffer, most < sizeof buffer ? most : sizeof buffer);
  if (got == 0) return Moved::kEnd;
  if (got < 0) return Moved::kNothing;
  for (ssize_t done = 0; done < got;) {
    const ssize_t wrote = write(file_, buffer + done, static_cast<std::size_t>(got - done));
    if (wrote <= 0) {
      dropped_ += static_cast<std::uint64_t>(got - done);
      drop_error_ = errno;
      break;
    }
    size_ += static_cast<std::uint64_t>(wrote);
    done += wrote;
  }
  return Moved::kSome;
}

OutputPump::Moved OutputPump::drop_some(int error) {
  char buffer[kCopyBuffer];
  const ssize_t got = read(read_end_, buffer, sizeof buffer);
  if (got == 0) return Moved::kEnd;
  if (got < 0) return Moved::kNothing;
  dropped_ += static_cast<std::uint64_t>(got);
  drop_error_ = error;
  return Moved::kSome;
}

bool OutputPump::is_at_limit() const {
  return is_cut_ || (options_.limit_bytes != 0 && start_ + size_ >= options_.limit_bytes);
}

OutputPump::Moved OutputPump::drop_past_limit() {
  char buffer[kCopyBuffer];
  const ssize_t got = read(read_end_, buffer, sizeof buffer);
  if (got == 0) return Moved::kEnd;
  if (got < 0) return Moved::kNothing;
  if (!std::exchange(is_cut_, true)) write_cut_mark();
  return Moved::kSome;
}

// Beyond the limit by its own length, so that a reader always finds it. On a full disk there is no
// room for it, and then that is what the end says.
void OutputPump::write_cut_mark() {
  const std::string mark = "\n[gpu-platform: more than " + std::to_string(options_.limit_bytes) +
                           " bytes of output; the rest is not kept]\n";
  const ssize_t wrote = file_ < 0 ? 0 : write(file_, mark.data(), mark.size());
  if (wrote > 0) size_ += static_cast<std::uint64_t>(wrote);
}

bool OutputPump::open_file() {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW;
  file_ = ::open(options_.path.c_str(), kFlags, 0640);
  if (file_ < 0 && errno == ENOENT) {
    make_folders();
    file_ = ::open(options_.path.c_str(), kFlags, 0640);
  }
  size_ = 0;
  return file_ >= 0;
}

// The job's, and the one it shares with a thousand others; the one above them is there.
void OutputPump::make_folders() const {
  const std::string own = options_.path.substr(0, options_.path.rfind('/'));
  mkdir(own.substr(0, own.rfind('/')).c_str(), kFolderMode);
  mkdir(own.c_str(), kFolderMode);
}

void OutputPump::rotate() {
  close_if_open(file_);
  rename(options_.path.c_str(), full_part_path(options_.path, start_).c_str());
  start_ += size_;
  const std::uint64_t kept = options_.file_bytes * (options_.files - 1);
  if (start_ > kept) {
    unlink(full_part_path(options_.path, start_ - kept - options_.file_bytes).c_str());
  }
}

std::uint64_t OutputPump::room() const {
  std::uint64_t left = options_.file_bytes == 0 ? kMostAtOnce : options_.file_bytes - size_;
  if (options_.limit_bytes != 0) left = std::min(left, options_.limit_bytes - start_ - size_);
  return left;
}

}  // namespace gpu_platform::node
