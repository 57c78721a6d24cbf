#pragma once

#include <cstdint>
#include <string_view>

namespace gpu_platform::base {

// 64-bit hash of bytes, the same on every platform and in every version: it is stored as checksum
// of journal and snapshot records and printed as state hash. Against accidents, not against
// attackers.
std::uint64_t hash64(std::string_view bytes, std::uint64_t seed = 0);

}  // namespace gpu_platform::base
