#pragma once

#include <string>

namespace gpu_platform::corpus {

// The answer without what is not of the stored bytes: moving_values.cpp has the list. Documents of
// JSON are written anew, so that only their values count: one line for each element of their lists.
std::string without_moving_values(const std::string& answer);

}  // namespace gpu_platform::corpus
