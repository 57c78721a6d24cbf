#pragma once

#include <string>
#include <string_view>

namespace gpu_platform::client {

// Returns `text` with everything that could disturb a terminal or mislead its reader (control
// characters, escape sequences, marks that turn the direction of writing, bytes that are not UTF-8)
// shown as '?'.
std::string harmless(std::string_view text);

}  // namespace gpu_platform::client
