#include "execution/container/output_frames.h"

#include <errno.h>
#include <unistd.h>

#include <algorithm>

namespace gpu_platform::execution {

void write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = write(fd, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
  }
}

void OutputFrames::take(std::string_view bytes) {
  while (!bytes.empty()) {
    const Piece piece = next(bytes);
    write_all(piece.fd, piece.bytes);
  }
}

OutputFrames::Piece OutputFrames::next(std::string_view& bytes) {
  while (left_ == 0 && !bytes.empty()) {
    const std::size_t used = std::min(kHead - head_.size(), bytes.size());
    head_ += bytes.substr(0, used);
    bytes.remove_prefix(used);
    if (head_.size() == kHead) begin_part();
  }
  const Piece piece{fd_, bytes.substr(0, left_)};
  bytes.remove_prefix(piece.bytes.size());
  left_ -= piece.bytes.size();
  return piece;
}

void OutputFrames::begin_part() {
  fd_ = head_[0] == 2 ? 2 : 1;
  left_ = 0;
  for (std::size_t i = 4; i < kHead; ++i) {
    left_ = left_ << 8 | static_cast<unsigned char>(head_[i]);
  }
  head_.clear();
}

}  // namespace gpu_platform::execution
