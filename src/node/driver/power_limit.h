#pragma once

#include <cstdint>
#include <string>

namespace gpu_platform::node {

// Sets the power limit of a GPU, within what the board allows. Returns why it could not, for
// people; empty: it is set. Needs root's rights.
std::string set_power_limit(const std::string& library, const std::string& uuid,
                            std::uint32_t milliwatts);

}  // namespace gpu_platform::node
