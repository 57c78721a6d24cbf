#pragma once

#include <string>

namespace gpu_emulator {

struct ControlOptions {
  std::string pipe_folder;
  std::string log_folder;
  std::string server_program;
  bool is_background = false;  // -d: returns in the caller when the daemon listens
};

// Serves front ends and clients until a `quit`. Returns the exit code of the program. It has one
// server, which the first client starts, and serves programs of its own user alone. (NVIDIA's
// serves one user after another.)
int run_control_daemon(const ControlOptions& options);

}  // namespace gpu_emulator
