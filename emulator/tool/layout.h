#pragma once

#include <string>

#include "tool/state_file.h"

// Lays out the files of NVIDIA's driver that programs read beside NVML, for one emulated node and
// for tests that show it in a mount namespace (docs/emulator.md has the commands).

namespace gpu_emulator {

// Writes below `dir`, which must be empty or not exist:
//   sys/bus/pci        the GPUs and NVSwitches as PCI devices, and the driver `nvidia`
//   sys/module/nvidia  the driver's version
//   proc/driver/nvidia its version and parameters, each GPU's information; where there is MIG the
//                      capabilities, and proc/driver/nvidia-caps with their numbers; proc/modules
//                      and proc/devices name the driver
//   driver             a driver's root: a copy of `library`, called by its version, with links of
//                      the usual names to it, and the device files, which are plain empty files
Status write_layout(const BoardState& state, const std::string& library, const std::string& dir);

}  // namespace gpu_emulator
