#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace gpu_platform::node {

// The kernel's list of drivers, /proc/devices. Reading it takes 0.1 ms, and the kernel does not
// tell when it changes, so the list is read again once it is a second old. A job that starts within
// the second after a driver was loaded uses the list without it, as a job that started just
// before.
class DriverList {
 public:
  explicit DriverList(std::string path = "/proc/devices") : path_(std::move(path)) {}

  // The list, at most a second old. `now_ms`: os::boot_ms().
  const std::string& text(std::int64_t now_ms);
  // The list of this moment, for a caller that misses a driver in it.
  const std::string& read_again(std::int64_t now_ms);
  // The list as it was read last; empty if it never was.
  const std::string& last() const { return text_; }

 private:
  std::string path_;
  std::string text_;
  std::optional<std::int64_t> read_at_ms_;
};

}  // namespace gpu_platform::node
