#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gpu_platform::node {

// What a program has printed, as one line of plain characters. Line ends become "; ", and
// several spaces one.
std::string plain_line(std::string_view text, std::size_t max = 400);

}  // namespace gpu_platform::node
