#pragma once

#include <string>
#include <string_view>

// The colors of the states of jobs, GPUs and nodes on a terminal, so that a person finds what needs
// attention in a long list. Running jobs are green, what is held back is yellow, and what went
// wrong is red. All other states have no color.

namespace gpu_platform::cli {

// Returns the parameters of the terminal's control sequence ("31"); empty for no color.
std::string_view color_of_state(std::string_view state);

// The text in that color; as it is for an empty one.
std::string colored(std::string_view text, std::string_view color);

// The text without control sequences for colors.
std::string without_colors(std::string_view text);

}  // namespace gpu_platform::cli
