#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace gpu_platform::model {

enum class Lost : std::uint8_t { kNo, kNodeLost, kUnknown };
std::string_view to_string(Lost lost);  // "NODE_LOST"

// The end of a process. Exactly one of code, signal and lost is set once it has ended.
struct Exit {
  std::optional<std::uint8_t> code;
  std::optional<std::uint8_t> signal;
  Lost lost = Lost::kNo;

  friend bool operator==(const Exit&, const Exit&) = default;
};

}  // namespace gpu_platform::model
