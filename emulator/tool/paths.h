#pragma once

#include <optional>
#include <string>

// Where things lie: beside the executable in a build folder, in ../share and ../lib where
// installed.

namespace gpu_emulator {

// Folder of board files; the first that exists of the installed one and the source tree's.
std::string default_boards_dir();

// Folder that holds libnvidia-ml.so.1.
std::string default_library_dir();

// The daemon's data directory when none is named.
std::string default_data_dir();

}  // namespace gpu_emulator
