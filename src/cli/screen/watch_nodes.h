#pragma once

#include "cli/screen/watch_view.h"

namespace gpu_platform::cli {

// A line for each node of these GPUs, with a character for each GPU: its utilization as a bar, or
// as a digit in ASCII ("6": 60 to 69 %); a dot for a free GPU, a cross for one that is out of
// service, "?" where a job holds it and nothing was read.
WatchTable watch_nodes(const ClusterGpus& gpus, const WatchView& view, const WatchStyle& style);

}  // namespace gpu_platform::cli
