#include "telemetry/history/open_frames.h"

#include <utility>

namespace gpu_platform::telemetry {

std::size_t bytes_of(const Frames& frames) {
  std::size_t bytes = 0;
  for (const Frame& frame : *frames) {
    bytes += sizeof frame + frame.values.capacity() * sizeof(Value) + frame.subject.node.size() +
             frame.subject.uuid.size();
  }
  return bytes;
}

bool OpenFrames::add(const Frames& frames) {
  if (frames == nullptr || frames->empty()) return false;
  const std::size_t bytes = bytes_of(frames);
  const std::lock_guard lock(mutex_);
  if (writing_bytes_ + open_bytes_ + bytes > max_bytes_) {
    dropped_ += frames->size();
    return true;
  }
  open_.push_back(frames);
  open_bytes_ += bytes;
  return open_bytes_ >= max_bytes_ / 2;
}

OpenFrames::Batch OpenFrames::begin() {
  const std::lock_guard lock(mutex_);
  writing_.insert(writing_.end(), open_.begin(), open_.end());
  writing_bytes_ += std::exchange(open_bytes_, 0);
  open_.clear();
  return {written_ + 1, writing_};
}

void OpenFrames::written() {
  std::vector<Frames> gone;  // freed without the lock
  const std::lock_guard lock(mutex_);
  gone.swap(writing_);
  writing_bytes_ = 0;
  ++written_;
}

void OpenFrames::given_up(std::size_t max_kept_bytes) {
  std::vector<Frames> gone;
  const std::lock_guard lock(mutex_);
  std::size_t count = 0;
  while (count < writing_.size() && writing_bytes_ > max_kept_bytes) {
    writing_bytes_ -= bytes_of(writing_[count]);
    dropped_ += writing_[count]->size();
    ++count;
  }
  const auto end = writing_.begin() + static_cast<std::ptrdiff_t>(count);
  gone.assign(writing_.begin(), end);
  writing_.erase(writing_.begin(), end);
}

std::optional<std::vector<Frames>> OpenFrames::after(std::uint64_t batch) const {
  const std::lock_guard lock(mutex_);
  std::vector<Frames> frames;
  if (batch == written_) {
    frames = writing_;
  } else if (batch != written_ + 1) {
    return std::nullopt;
  }
  frames.insert(frames.end(), open_.begin(), open_.end());
  return frames;
}

void OpenFrames::start_after(std::uint64_t batch) {
  const std::lock_guard lock(mutex_);
  written_ = batch;
}

std::uint64_t OpenFrames::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

void OpenFrames::count_dropped(std::uint64_t frames) {
  const std::lock_guard lock(mutex_);
  dropped_ += frames;
}

}  // namespace gpu_platform::telemetry
