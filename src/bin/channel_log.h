#pragma once

#include <cstdint>
#include <string>

#include "logging/log.h"
#include "model/channel.h"

namespace gpu_platform::bin {

// Writes to the log that a channel into a job began, and, destroyed, that it ended: who, which job,
// and the command's first word or the port. Arguments may be secrets and are left out. If a user
// opens very many channels, not all of them are logged. Any thread.
class ChannelLog {
 public:
  // `log` outlives this.
  ChannelLog(logging::Log& log, std::uint64_t number, const model::ChannelOrder& order);
  ~ChannelLog();
  ChannelLog(const ChannelLog&) = delete;
  ChannelLog& operator=(const ChannelLog&) = delete;

 private:
  logging::Log& log_;
  const logging::Source source_;
  const std::string what_;
};

}  // namespace gpu_platform::bin
