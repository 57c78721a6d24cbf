#pragma once

#include <string>
#include <string_view>

namespace gpu_platform::outbound {

// HMAC-SHA-256 in lower-case hexadecimal digits.
std::string hmac_sha256(std::string_view key, std::string_view bytes);

// SHA-256 in lower-case hexadecimal digits.
std::string sha256(std::string_view bytes);

}  // namespace gpu_platform::outbound
