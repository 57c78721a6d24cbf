#pragma once

#include <cstdint>
#include <string>

#include "logging/log.h"
#include "model/channel.h"

namespace gpu_platform::bin {

// Logs the begin of a channel into a job and, on destruction, its end: the user, the job, and the
// command's first word or the port. Arguments may be secrets and are left out. If a user opens very
// many channels, not all of them are logged. Any thread.
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
