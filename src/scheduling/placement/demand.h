#pragma once

#include <cstdint>

#include "base/units.h"
#include "model/job.h"

namespace gpu_platform::scheduling {

struct NodeTotals {
  std::uint32_t cpus = 0;
  base::Bytes memory;
  std::uint32_t gpus = 0;
};

// What a request comes to on a node, beside its GPUs.
struct Demand {
  std::uint32_t cpus = 0;
  base::Bytes memory;
};

// Where the request names no CPUs or memory it takes the node's share: of all GPUs for a GPU job
// (rounded down, so that shares never add up to more than the node, but at least 1 CPU), 1 CPU and
// the memory of its CPUs for a CPU job. What exceeds the number range comes out as its largest
// value, which no node has.
Demand demand_on(const model::ResourceRequest& request, const NodeTotals& totals);

}  // namespace gpu_platform::scheduling
