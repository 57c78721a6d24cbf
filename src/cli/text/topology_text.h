#pragma once

#include <cstddef>
#include <string>

#include "cli/text/job_names.h"
#include "gpu_platform/v1/cluster.pb.h"

// How the GPUs of nodes lie to each other, drawn for people.

namespace gpu_platform::cli {

// Whether jobs have parts of a GPU there.
bool has_parts(const v1::GetTopologyResponse& topology);

// Returns the page of a GetTopologyResponse: nodes of equal topology once, each as a matrix and a
// tree, then the legend, and at the end the GPUs that jobs have parts of. `width` is the
// terminal's, 0 where there is none.
std::string topology_page(v1::GetTopologyResponse topology, std::size_t width,
                          const JobLabels& labels = {});

}  // namespace gpu_platform::cli
