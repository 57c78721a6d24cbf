#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// Base64 (RFC 4648).

namespace gpu_platform::base {

enum class Base64 : std::uint8_t {
  kStandard,    // "+/", padded with "="
  kUrl,         // "-_", padded
  kUrlUnpadded  // "-_", as web tokens have it
};

void append_base64(std::string& out, std::string_view bytes, Base64 form = Base64::kStandard);
std::string to_base64(std::string_view bytes, Base64 form = Base64::kStandard);

// Returns nothing unless the text is exactly what append_base64() writes for some bytes: bits that
// are not zero behind the last byte, padding that is missing or too much, spaces and line ends are
// refused.
std::optional<std::string> parse_base64(std::string_view text, Base64 form = Base64::kStandard);

// Returns whether the character is one of the form's 64, or its padding.
bool is_base64(char c, Base64 form = Base64::kStandard);

}  // namespace gpu_platform::base
