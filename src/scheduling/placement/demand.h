#pragma once

#include <cstdint>

#include "base/units.h"
#include "model/job.h"
#include "model/resource_request.h"

namespace gpu_platform::scheduling {

struct NodeTotals {
  std::uint32_t cpus = 0;
  base::Bytes memory;
  std::uint32_t gpus = 0;
};

// The needs of a request on a node, beside its GPUs.
struct Demand {
  std::uint32_t cpus = 0;
  base::Bytes memory;
};

// If the request names no CPUs or memory, it gets the node's share. For a GPU job that is the share
// per GPU in what its reserve leaves (rounded down, so that shares never exceed the node, but at
// least 1 CPU); for a CPU job
// it is 1 CPU and the memory of its CPUs. A value beyond the number range becomes the largest
// value, which no node has.
Demand demand_on(const model::ResourceRequest& request, const NodeTotals& totals);

}  // namespace gpu_platform::scheduling
