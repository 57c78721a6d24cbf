#pragma once

#include <string_view>

namespace gpu_emulator {

// The log of a control daemon: lines with the time and the process, as NVIDIA's has them.
class MpsLog {
 public:
  // `fd` stays the caller's.
  explicit MpsLog(int fd) : fd_(fd) {}
  void line(std::string_view text) const;

 private:
  int fd_;
};

}  // namespace gpu_emulator
