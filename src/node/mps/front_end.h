#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "node/identity.h"
#include "node/protocol.h"

namespace gpu_platform::node {

// The program that speaks to a user's MPS control daemon, nvidia-cuda-mps-control. The daemon
// itself is the same program with other arguments.
struct MpsProgram {
  std::string path;    // absolute
  std::string folder;  // of the daemon: mps_folder()
  Identity user;       // that it becomes first, if we are root
};

// All that the front end gets as environment, NAME=VALUE.
std::vector<std::string> mps_front_end_environment(const MpsProgram& program);
// The same for the daemon. The GPU is the only one that its servers see, so it is their device 0.
// `board`: where the GPU is emulated.
std::vector<std::string> mps_daemon_environment(const MpsProgram& program, std::string_view gpu,
                                                const std::optional<BoardFiles>& board);

struct MpsAnswer {
  std::string text;  // all that was said
  std::string why;   // there is no answer: it did not start, found no daemon or hung; else empty
};

// Runs the front end once with these lines as its input, the last one without its line feed, and
// waits for its end. After `timeout_ms` it is killed. It is our child, in our cgroup, and does not
// outlive us. What a daemon refuses is said in the text (control_words.h). At most 64 KiB of lines
// are given, and as much of the text is kept.
//
// For a process without threads. If that process waits for all of its children, it may find this
// one among them.
MpsAnswer ask_mps_daemon(const MpsProgram& program, std::string_view commands, int timeout_ms);

}  // namespace gpu_platform::node
