#pragma once

#include <optional>
#include <span>

#include "model/channel.h"
#include "node/relay/channel_opening.h"

namespace gpu_platform::node {

// What comes out of a command or a connection, a frame at a time. Does not block.
class ChannelOutput {
 public:
  void begin(const OpenedChannel& opened);

  // Returns what is there now, of the two sources by turns, so that neither keeps the other
  // waiting. `buffer` has room for a frame's bytes, and the frame points into it.
  std::optional<model::Frame> next(std::span<char> buffer);
  // Nothing more will come.
  bool is_at_end() const { return output_.fd < 0 && error_.fd < 0; }
  // The descriptors to wait for; -1: none, or at its end.
  int output() const { return output_.fd; }
  int error() const { return error_.fd; }

 private:
  // One thing to read output from, as long as it has any.
  struct Source {
    int fd = -1;
    bool is_error = false;
  };
  std::optional<model::Frame> read_one(Source& source, std::span<char> buffer) const;

  Source output_;
  Source error_;
  bool is_terminal_ = false;
};

}  // namespace gpu_platform::node
