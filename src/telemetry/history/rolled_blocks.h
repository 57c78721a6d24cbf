#pragma once

#include <vector>

#include "telemetry/block.h"
#include "telemetry/frame.h"

namespace gpu_platform::telemetry {

struct RolledBlocks {
  Block minutes;
  Block quarters;
};

// Makes the points of raw samples. `counters` has the last value of each counter of the subject
// before them, ascending by metric, and afterwards the last one with them. Columns of metrics that
// this program does not know are left out: their kind is not known.
RolledBlocks roll_up(Of of, const Block& raw, std::vector<Value>& counters);

}  // namespace gpu_platform::telemetry
