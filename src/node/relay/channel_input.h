#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "node/relay/channel_opening.h"

namespace gpu_platform::node {

// What the client types, on its way to a command or a connection, which may be slow to take it.
// Does not block.
class ChannelInput {
 public:
  void begin(const OpenedChannel& opened);

  // Returns false if the client may not send that now: more than the window, or after its end.
  bool take(std::string_view bytes);
  void take_end() { has_end_ = true; }
  // Passes on what fits.
  void feed();
  // Returns how many bytes were passed on, or dropped because no process reads them, since last
  // asked.
  std::uint32_t count_taken();
  // The descriptor to wait for until it can be written to; -1: nothing waits.
  int waits_for() const { return waiting_.empty() ? -1 : fd_; }

 private:
  ssize_t write_some() const;
  void close_input();

  enum class Kind { kPipe, kTerminal, kContainerTerminal, kConnection };
  Kind kind_ = Kind::kPipe;
  int fd_ = -1;
  std::string waiting_;
  bool has_end_ = false;  // the client sends no more
  std::uint32_t taken_ = 0;
};

}  // namespace gpu_platform::node
