#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "outbound/channel.h"

namespace gpu_platform::outbound {

// How a channel does.
struct ChannelState {
  std::string channel;
  std::uint64_t waiting = 0;  // messages on disk
  std::uint64_t sent = 0;     // since the start
  std::uint64_t refused = 0;  // given up: the other side will never take them (422, 5xx of mail)
  std::uint64_t dropped = 0;  // the oldest, where too many waited
  std::optional<base::Instant> oldest;  // of those that wait
  std::optional<base::Instant> last_sent;
  std::string problem;  // of the last try; empty: it went
};

// The queue of messages on disk, and the threads that deliver them: one for each channel, so that a
// channel that hangs holds up no other. In order; a failed delivery is tried again after 1 s,
// doubling to 5 minutes, until it went or was refused for good. A message that was put is delivered
// at least once, also after a kill; its key lets the other side know it again.
//
// Safe from any thread.
class Outbox {
 public:
  struct Options {
    std::string folder;                // made if it is not there, 0700
    std::size_t max_waiting = 10'000;  // of each channel; then the oldest go, and are counted
    base::Bytes max_bytes = base::kMiB * 256;      // of the file; put() fails when it is full
    base::Duration first_wait = base::seconds(1);  // after the first failure, then doubled
    base::Duration longest_wait = base::minutes(5);
    // What people should know, a line without secrets: refused and dropped messages, and the first
    // failure of a channel that worked. From any thread; empty: it is not told.
    std::function<void(std::string_view)> warn;
  };
  static base::Result<std::unique_ptr<Outbox>> open(Options options, std::vector<Channel> channels);
  virtual ~Outbox() = default;

  // On disk when it returns. A message whose key is known is left out: one that waits, or one of
  // the last 10,000 of all channels that went or were refused. kNotFound: there is no such channel.
  // kInvalidArgument: the message is larger than 1 MiB, or its key is empty. kResourceExhausted:
  // the disk or the file is full.
  virtual base::Status put(Delivery delivery) = 0;
  // Takes up other channels; what waits for those that went is dropped, and its count is told. Of
  // two channels with one name the first counts. May take a second, where a transfer is under way.
  virtual void set_channels(std::vector<Channel> channels) = 0;
  // Tries to deliver now, past the queue, and says how it went: for tests of a channel by people.
  virtual base::Status try_now(const Delivery& delivery) = 0;
  virtual std::vector<ChannelState> states() const = 0;
};

}  // namespace gpu_platform::outbound
