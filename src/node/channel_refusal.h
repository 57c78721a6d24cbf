#pragma once

#include <cstdint>
#include <string_view>

namespace gpu_platform::node {

// Answers a channel that cannot be opened; the descriptor stays the caller's.
void refuse_channel(int channel, std::string_view why, std::uint8_t value = 0);

}  // namespace gpu_platform::node
