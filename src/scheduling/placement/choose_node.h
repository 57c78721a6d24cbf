#pragma once

#include <optional>

#include "model/ids.h"
#include "model/job.h"
#include "scheduling/cluster.h"
#include "scheduling/placement/best_subset.h"
#include "scheduling/placement/demand.h"
#include "scheduling/placement/gpu_filter.h"

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
// ties go to the lowest id. Nothing where no node that is up has room now. Cost: by shapes and
// groups of equal nodes, not by nodes.
std::optional<NodeChoice> choose_node(const Cluster& cluster, const model::ResourceRequest& request,
                                      const GpuFilter& filter);

// The widest rank at which a node of this shape may give the request its GPUs: across sockets only
// when the request allows it, or when none of the node's NUMA domains has so many of the GPUs it
// accepts, in use or not; never when it is strict.
PlacementRank widest_rank(const ShapeClass& shape_class, const model::ResourceRequest& request,
                          const GpuFilter& filter);

// Whether a node of this shape could hold the request if nothing else ran on it.
bool could_hold(const ShapeClass& shape_class, const model::ResourceRequest& request,
                const GpuFilter& filter);

}  // namespace gpu_platform::scheduling
