#pragma once

#include <cstddef>
#include <string>

#include "cli/json_view.h"

// How the GPUs of nodes lie to each other, drawn for people.

namespace gpu_platform::cli {

// Returns the page of a GetTopologyResponse: nodes of equal topology once, each as a matrix and a
// tree, the legend at the end. `width` is the terminal's, 0 where there is none.
std::string topology_page(const Json& topology, std::size_t width);

}  // namespace gpu_platform::cli
