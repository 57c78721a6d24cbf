#pragma once

#include <string>
#include <string_view>

namespace gpu_platform::base {

// Returns the bytes as digits, two for each, as recorded messages stand in tests: "010f".
inline std::string hex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    text.push_back(kDigits[static_cast<unsigned char>(c) >> 4]);
    text.push_back(kDigits[static_cast<unsigned char>(c) & 15]);
  }
  return text;
}

}  // namespace gpu_platform::base
