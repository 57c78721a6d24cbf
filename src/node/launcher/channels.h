#pragma once

#include <cstdint>
#include <string>

#include "node/channel_lines.h"
#include "node/launcher/attempts_on_disk.h"
#include "node/launcher/children.h"

namespace gpu_platform::node {

// Channels into running attempts: each gets a relay of its own, or the supervisor of a job that
// people talk to.
class Channels {
 public:
  // All must outlive it.
  Channels(const LauncherOptions& options, const LauncherHost& host, const AttemptsOnDisk& attempts,
           Children& children)
      : o_(options), host_(host), attempts_(attempts), children_(children) {}

  // Returns the running attempt's record; nothing: `channel` was told that it has ended.
  std::optional<Record> find_running(model::AttemptId attempt, int channel) const;
  void start_relay(model::AttemptId attempt, const Record& record, const Identity& user,
                   int channel);
  void hand_to_supervisor(model::AttemptId attempt, int channel) const;

 private:
  int log_for_channel_of(std::uint32_t uid);

  const LauncherOptions& o_;
  const LauncherHost& host_;
  const AttemptsOnDisk& attempts_;
  Children& children_;
  ChannelLines lines_;
};

}  // namespace gpu_platform::node
