#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace gpu_platform::node {

// Decides which channels the node part logs: a number per minute for each user; the others are
// counted. It has no clock: times are arguments, in milliseconds of a steady one.
class ChannelLines {
 public:
  static constexpr std::uint32_t kOfUser = 30;  // a channel has two lines
  static constexpr std::int64_t kWindow = 60'000;
  static constexpr std::size_t kMaxUsers = 1024;  // those beyond are counted together

  bool take(std::uint32_t uid, std::int64_t now) {
    if (end_ == 0) end_ = now + kWindow;
    const bool is_new = !users_.contains(uid) && users_.size() >= kMaxUsers;
    Count& count = users_[is_new ? kOthers : uid];
    if (count.told >= kOfUser) {
      ++count.dropped;
      return false;
    }
    ++count.told;
    return true;
  }

  // Returns, when a minute is over, lines about the channels that were not logged in it. The next
  // minute begins with the next channel.
  std::string close_if_over(std::int64_t now) {
    std::string lines;
    if (end_ == 0 || now < end_) return lines;
    for (const auto& [uid, count] : users_) {
      if (count.dropped == 0) continue;
      lines += "gpu-platform-node: … " + std::to_string(count.dropped) + " channels of " +
               (uid == kOthers ? "others" : "uid " + std::to_string(uid)) +
               " were not logged in the last 60 s\n";
    }
    users_.clear();
    end_ = 0;
    return lines;
  }

 private:
  static constexpr std::uint32_t kOthers = 0xffffffff;  // no single user
  struct Count {
    std::uint32_t told = 0;
    std::uint64_t dropped = 0;
  };
  std::map<std::uint32_t, Count> users_;
  std::int64_t end_ = 0;  // of the minute; 0: none has begun
};

}  // namespace gpu_platform::node
