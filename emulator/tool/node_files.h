#pragma once

#include <string>
#include <string_view>

#include "tool/board_file.h"
#include "tool/state_file.h"

// The files of one emulated node, made from a board file.

namespace gpu_emulator {

inline constexpr const char* kStateName = "state";
inline constexpr const char* kHostName = "host.json";

// Makes DIR/state and DIR/host.json (and DIR, readable by all: readings are no secret). A valid
// state of the same board file and node is kept with everything that is loaded on it. Any other
// state is replaced in one step; programs that have the old one mapped do not see that.
Status create_node(const Board& board, const std::string& node_name, const std::string& dir);

// Returns true for valid names of nodes: letters, digits, '.', '_', '-', not beginning with '.', at
// most 200 characters.
bool is_node_name(std::string_view name);

}  // namespace gpu_emulator
