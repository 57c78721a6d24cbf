#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace gpu_platform::api {

// The owners of uids without an account: in a user namespace a user may act under the uids that
// /etc/subuid gives to that user (subuid(5)). The file is read again when it is a minute old. Safe
// from any thread; takes the time of a local file read.
class SubordinateIds {
 public:
  explicit SubordinateIds(std::string path = "/etc/subuid") : path_(std::move(path)) {}

  // Returns the user with the range that the uid lies in, by name or number as the file has it.
  std::optional<std::string> owner_of(std::uint32_t uid);

 private:
  struct Range {
    std::string owner;
    std::uint64_t first = 0;
    std::uint64_t count = 0;
  };
  void read_again();

  const std::string path_;
  std::mutex mutex_;
  std::vector<Range> ranges_;
  std::optional<std::chrono::steady_clock::time_point> read_at_;
};

}  // namespace gpu_platform::api
