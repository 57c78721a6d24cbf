#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "board_state.h"

namespace gpu_emulator {

// A decimal number, or a hexadecimal one after 0x, without sign.
std::optional<std::uint64_t> parse_number(std::string_view text);

// "00000000:1b:00.0" or "0000:1b:00.0", any case, function 0.
std::optional<PciAddress> parse_pci(std::string_view text);

}  // namespace gpu_emulator
