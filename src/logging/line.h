#pragma once

#include <cstddef>
#include <string>
#include <string_view>

// Makes text of users safe for lines of the daemon's log. By the choice of a name, a user must not
// be able to end a line, forge a line of the daemon, or reach the terminal on which the log is
// read.

namespace gpu_platform::logging {

inline constexpr std::size_t kLongestLine = 4096;
inline constexpr std::size_t kLongestValue = 256;

// Returns one line that harms no terminal: control characters, marks that change the direction of
// writing, and bytes that are not UTF-8 become \n, \t, \x1b or \u202e. A text that would be longer
// than `most` bytes is cut, and "…" marks the cut.
std::string one_line(std::string_view text, std::size_t most = kLongestLine);

// The same between quotation marks, those inside and backslashes escaped: what a user chose, as the
// value of a key.
std::string quoted(std::string_view text, std::size_t most = kLongestValue);

}  // namespace gpu_platform::logging
