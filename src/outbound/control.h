#pragma once

#include <algorithm>
#include <string_view>

namespace gpu_platform::outbound {

// Such a character would end a header or a command of SMTP, and begin another.
inline bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f;
}

inline bool has_control(std::string_view text) {
  return std::ranges::any_of(text, is_control);
}

}  // namespace gpu_platform::outbound
