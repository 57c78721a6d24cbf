#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpu_platform::sizing {

// Returns the name in lower case, with '-' for '_' and without dashes in front.
std::string plain(std::string_view name);
bool is_digit(char c);

// Reads a decimal number at the front of `text` in thousandths, and cuts it off.
std::optional<std::uint64_t> take_thousandths(std::string_view& text);

}  // namespace gpu_platform::sizing
