#pragma once

#include <optional>
#include <string>

// The places of files: beside the executable in a build folder, in ../share and ../lib if
// installed.

namespace gpu_emulator {

// Returns the folder of board files: the first that exists of the installed one and the source
// tree's.
std::string default_boards_dir();

// Returns the folder that holds libnvidia-ml.so.1.
std::string default_library_dir();

// Returns the folder that holds nvidia-smi alone.
std::string default_program_dir();

// Returns the daemon's data directory if none is named.
std::string default_data_dir();

}  // namespace gpu_emulator
