#pragma once

#include <optional>

#include "model/ids.h"
#include "model/job.h"
#include "scheduling/cluster.h"
#include "scheduling/placement/choose_gpus.h"

namespace gpu_platform::scheduling {

struct NodeChoice {
  model::NodeId node;
  const ShapeClass* shape_class = nullptr;  // of the cluster
  GpuMask free_gpus = 0;
  Demand demand;
  Subset gpus;  // none where the request has none
};

// The node and the GPUs on it. First comes the rank at which the GPUs can be had there, so that a
// node where they fit into one NUMA node goes before one where they do not; then the node that
// would be left with the fewest free GPUs, then the fewest free CPUs, then the least free memory;
// ties go to the lowest id. Nothing where no node that is up has enough free now. Cost: by shapes
// and groups of equal nodes, not by nodes.
std::optional<NodeChoice> choose_node(const Cluster& cluster, const model::ResourceRequest& request,
                                      const GpuFilter& filter);

}  // namespace gpu_platform::scheduling
