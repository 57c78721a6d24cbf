#pragma once

#include <string>
#include <vector>

#include "board_state.h"

// The files with which the driver tells of MIG's capabilities, as a node's folder and a layout have
// them (mig_files.h keeps those of instances up to date).

namespace gpu_emulator {

struct NodeFile {
  std::string path;  // below the folder: "proc/driver/..."
  std::string text;
};

bool board_has_mig(const BoardState& state);

// The capabilities to configure and to monitor MIG, those of the instances of this moment, and the
// minor numbers of all instances that there could be.
std::vector<NodeFile> mig_files_of(const BoardState& state);

// The names of the device nodes of these capabilities below /dev: "nvidia-caps/nvidia-cap1".
std::vector<std::string> mig_devices_of(const BoardState& state);

}  // namespace gpu_emulator
