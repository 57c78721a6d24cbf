#pragma once

#include <poll.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "execution/container/output_frames.h"
#include "http/http.h"

namespace gpu_platform::execution {

// What a container, or a command in it, reads and prints: its engine's end is a connection that
// was HTTP, ours are descriptors. What one side does not take stays with the other, so memory is
// bounded. A reader of ours that has gone misses the rest, and the engine's side goes on.
//
// Never waits. One thread.
class HijackedStream {
 public:
  struct Ends {
    int input = -1;  // -1: there is none
    bool is_terminal = false;
  };
  // Output goes to descriptors 1 and 2; with a terminal all of it to 1. The descriptors never block
  // from here on.
  HijackedStream(http::RawStream engine, const Ends& ends);

  // Input is not read before this.
  void let_input_in() { may_read_input_ = true; }

  static constexpr std::size_t kHandles = 3;
  void watch(pollfd* handles) const;  // fills kHandles of them
  // Does all that can be done now.
  void work();
  // Returns whether the engine has closed its end and all that it sent is passed on.
  bool has_ended() const { return engine_has_ended_ && unparsed_.empty() && pending_.empty(); }

 private:
  bool wants_input() const;
  void feed_input();
  void read_input();
  void pass_output();
  bool write_pending();
  void next_piece();
  bool read_engine();

  Ends ends_;
  os::Descriptor engine_;
  OutputFrames frames_;
  bool may_read_input_ = false;
  bool input_has_ended_ = false;
  bool is_half_closed_ = false;
  bool engine_has_ended_ = false;
  bool reader_has_gone_[3] = {};
  std::string to_engine_;
  std::string unparsed_;  // from the engine
  std::string pending_;   // for descriptor pending_fd_
  int pending_fd_ = 1;
};

}  // namespace gpu_platform::execution
