#pragma once

#include <string>

#include "model/channel.h"

namespace gpu_platform::node {

// A pseudo terminal: the job's side is given away and closed here, ours stays.
struct Terminal {
  int ours = -1;    // not blocking
  int theirs = -1;  // owned by the user
};

// Returns false with errno. `uid`: the owner of the terminal, if we may give it away.
bool open_terminal(model::TerminalSize size, std::uint32_t uid, bool give_away, Terminal& out);

bool resize_terminal(int ours, model::TerminalSize size);

}  // namespace gpu_platform::node
