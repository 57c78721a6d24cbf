#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bin/program_paths.h"
#include "config/configuration.h"

// Where the program is that starts MPS servers (nvidia-cuda-mps-control). The node part runs it as
// the user of each server.

namespace gpu_platform::bin {

// Returns the folders in which it is looked for, the first one first. On emulated boards that is
// the folder of the emulator's nvidia-smi alone: NVIDIA's own knows no boards. `path`: the value of
// the daemon's PATH, of which absolute folders count.
std::vector<std::string> mps_control_folders(const ProgramPaths& programs, bool has_boards,
                                             std::string_view path);

// Returns the program of the site, or else the first one in these folders; empty if there is none
// that may be executed. Where MPS is off it is returned as well: jobs that have begun go on.
std::string find_mps_control(const config::MpsControl& control,
                             const std::vector<std::string>& folders);

}  // namespace gpu_platform::bin
