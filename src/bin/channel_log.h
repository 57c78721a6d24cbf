#pragma once

#include <cstdint>
#include <string>

#include "model/channel.h"

namespace gpu_platform::bin {

// Writes to the log that a channel into a job began, and, destroyed, that it ended: who, which job,
// and the command's first word or the port. Arguments may be secrets and are left out. Any thread.
class ChannelLog {
 public:
  ChannelLog(std::uint64_t number, const model::ChannelOrder& order);
  ~ChannelLog();
  ChannelLog(const ChannelLog&) = delete;
  ChannelLog& operator=(const ChannelLog&) = delete;

 private:
  std::string what_;
};

}  // namespace gpu_platform::bin
