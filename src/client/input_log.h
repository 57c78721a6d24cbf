#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

namespace gpu_platform::client {

// What was sent to a job and not taken yet, so that a second channel can go on where the first one
// broke off. At most the channel's window.
class InputLog {
 public:
  void sent(std::string_view bytes) { waiting_ += bytes; }
  void taken(std::size_t bytes) {
    const std::size_t known = std::min(bytes, waiting_.size());
    waiting_.erase(0, known);
    begin_ += known;
  }
  void end() { has_ended_ = true; }

  // The job has got so much in all: what it has not got.
  std::string_view missing_after(std::uint64_t received) {
    if (waiting_.empty()) begin_ = received;
    if (received > begin_) taken(static_cast<std::size_t>(received - begin_));
    return waiting_;
  }
  bool has_ended() const { return has_ended_; }

 private:
  std::string waiting_;
  std::uint64_t begin_ = 0;  // its place in all of the job's input
  bool has_ended_ = false;
};

}  // namespace gpu_platform::client
