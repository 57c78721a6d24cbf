#pragma once

#include <istream>
#include <string>

namespace gpu_emulator {

// Sends each line to the control daemon of the folder and prints its answers. Returns the exit
// code: 0 whatever the answers are, 1 without a daemon.
int run_mps_front_end(const std::string& pipe_folder, std::istream& commands);

}  // namespace gpu_emulator
