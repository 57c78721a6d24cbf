#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "model/channel.h"
#include "node/relay/channel_opening.h"

namespace gpu_platform::node {

// The command of a channel: a child and its group, or the program beside a container, which acts in
// our place. A channel to a port has none: then nothing here does anything.
class Command {
 public:
  // When it was not reaped; what it ended with stands in `end`.
  void begin(const OpenedChannel& opened);
  bool is_running() const { return pid_ > 0; }
  // Reaps it if it has ended, and says so in `end`.
  void reap(model::EndFrame& end);

  // To the foreground group of its terminal, else to its own.
  void signal(int signal);
  void resize(const model::ResizeFrame& resize) const;
  // Ends it as a terminal that hangs up does, and with SIGKILL some seconds later.
  void hang_up();
  void kill_if_due();
  // When kill_if_due() has something to do, on the boot clock; 0: never.
  std::int64_t deadline_ms() const { return deadline_ms_; }

  // The handle of the program beside a container, to be waited for; -1: there is none.
  int control() const { return control_; }
  // Reads what that program says of the command's end. `buffer` has room for a frame.
  void read_control(std::span<char> buffer);
  const std::string& last_words() const { return last_words_; }

 private:
  bool is_in_container() const { return in_container_; }
  void close_control();
  void tell_control(const model::Frame& frame) const;
  pid_t foreground_group() const;

  int pid_ = -1;  // until it is reaped
  int terminal_ = -1;
  int control_ = -1;
  bool in_container_ = false;
  std::int64_t deadline_ms_ = 0;
  std::string last_words_;
};

}  // namespace gpu_platform::node
