#include "node/supervisor/output_pump.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "node/folders/node_folders.h"
#include "node/protocol.h"

namespace gpu_platform::node {

namespace {

constexpr std::uint64_t kMaxAtOnce = 1 << 20;
constexpr std::size_t kCopyBuffer = 16 * 1024;

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
  close_if_open(folder_);
}

bool OutputPump::open() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  read_end_ = ends[0];
  write_end_ = ends[1];
  // This changes the file description of the read end alone. The job's end stays blocking.
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
  if (file_ < 0 || space_left() == 0) {
    pollfd waiting{read_end_, POLLIN, 0};
    if (poll(&waiting, 1, 0) <= 0) return Moved::kNothing;
    if ((waiting.revents & POLLIN) == 0) return Moved::kEnd;
    if (file_ >= 0) rotate();
    if (file_ < 0 && !open_file()) return drop_some(errno);
  }
  const std::uint64_t most = space_left() < kMaxAtOnce ? space_left() : kMaxAtOnce;
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

void OutputPump::note(const std::string& words) {
  pump();
  if (is_at_limit() || (file_ < 0 && !open_file())) return;
  // Parts have their full size, so what does not fit is cut.
  const std::string line = "\n" + words + "\n";
  const ssize_t wrote =
      write(file_, line.data(), std::min<std::uint64_t>(line.size(), space_left()));
  if (wrote > 0) size_ += static_cast<std::uint64_t>(wrote);
}

bool OutputPump::open_file() {
  if (folder_ < 0 && !open_folder()) return false;
  file_ = open_below(folder_, options_.name.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0640);
  size_ = 0;
  return file_ >= 0;
}

// The job's, in the one that it shares with a thousand others.
bool OutputPump::open_folder() {
  const std::string& path = options_.folder;
  int above = options_.output;
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    folder_ = make_folder_below(above, path.substr(at, end - at).c_str());
    const int error = errno;
    if (above != options_.output) close(above);
    errno = error;
    if (folder_ < 0) return false;
    above = folder_;
    at = end + 1;
  }
  return folder_ >= 0;
}

int OutputPump::open_for_reading() const {
  return folder_ < 0 ? -1 : open_below(folder_, options_.name.c_str(), O_RDONLY);
}

void OutputPump::rotate() {
  close_if_open(file_);
  const std::string& name = options_.name;
  renameat(folder_, name.c_str(), folder_, full_part_path(name, start_).c_str());
  start_ += size_;
  const std::uint64_t kept = options_.file_bytes * (options_.files - 1);
  if (start_ > kept) {
    unlinkat(folder_, full_part_path(name, start_ - kept - options_.file_bytes).c_str(), 0);
  }
}

std::uint64_t OutputPump::space_left() const {
  std::uint64_t left = options_.file_bytes == 0 ? kMaxAtOnce : options_.file_bytes - size_;
  if (options_.limit_bytes != 0) left = std::min(left, options_.limit_bytes - start_ - size_);
  return left;
}

}  // namespace gpu_platform::node
