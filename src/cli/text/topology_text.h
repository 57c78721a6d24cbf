#pragma once

#include <cstddef>
#include <string>

#include "gpu_platform/v1/cluster.pb.h"

// How the GPUs of nodes lie to each other, drawn for people.

namespace gpu_platform::cli {

// Returns the page of a GetTopologyResponse: nodes of equal topology once, each as a matrix and a
// tree, the legend at the end. `width` is the terminal's, 0 where there is none.
std::string topology_page(v1::GetTopologyResponse topology, std::size_t width);

}  // namespace gpu_platform::cli
