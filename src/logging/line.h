#pragma once

#include <cstddef>
#include <string>
#include <string_view>

// Text of users in lines of the daemon's log. A user who chooses a name must not be able to end a
// line, forge a line of the daemon, or reach the terminal on which the log is read.

namespace gpu_platform::logging {

inline constexpr std::size_t kLongestLine = 4096;
inline constexpr std::size_t kLongestValue = 256;

// One line of what harms no terminal: controls, marks that turn the direction of writing and bytes
// that are no UTF-8 become \n, \t, \x1b or \u202e. Of a text that would be longer than `most` bytes
// the end is left out and "…" stands for it.
std::string one_line(std::string_view text, std::size_t most = kLongestLine);

// The same between quotation marks, those inside and backslashes escaped: what a user chose, as the
// value of a key.
std::string quoted(std::string_view text, std::size_t most = kLongestValue);

}  // namespace gpu_platform::logging
