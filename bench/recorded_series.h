#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "telemetry/frame.h"

// Readings that were recorded, for the benchmarks: what `gpu-platform history --csv --step 0` has
// printed of nodes or GPUs, as frames again.

namespace gpu_platform::bench {

// The frames of each GPU and host of the file, by time. The file has by how much a counter grew
// from one reading to the next, so here each counter begins at what its first reading grew by, and
// times are whole milliseconds. Lines of jobs and teams are no readings: they are refused, as are
// metrics that this program does not know.
base::Result<std::vector<std::vector<telemetry::Frame>>> read_recording(const std::string& path);

}  // namespace gpu_platform::bench
