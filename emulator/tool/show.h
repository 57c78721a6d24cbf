#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "board_readings.h"

// Shows a board as text for people and as JSON.

namespace gpu_emulator {

void append_table(const BoardState& state, std::string& out);
nlohmann::ordered_json json_of(const BoardState& state);

}  // namespace gpu_emulator
