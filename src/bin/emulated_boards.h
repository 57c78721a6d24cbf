#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace gpu_platform::bin {

struct EmulatedNode {
  std::string name;   // "dgx-h100-1"
  std::string board;  // "dgx-h100"
};

// The nodes of an --emulate value: SPEC[,SPEC…], SPEC = [Nx]BOARD, N from 1 to 1024. Numbers count
// per board over the whole value.
base::Result<std::vector<EmulatedNode>> parse_emulate(std::string_view value);

// Has the emulator make the node's board under DIR (or keep the one that is there).
base::Status create_board(const EmulatedNode& node, const std::string& dir,
                          const std::string& emulator);

}  // namespace gpu_platform::bin
