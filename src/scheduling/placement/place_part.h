#pragma once

#include <optional>

#include "model/allocation.h"
#include "model/resource_request.h"
#include "scheduling/cluster.h"
#include "scheduling/placement/choose_gpus.h"

// The place of a part of a GPU.

namespace gpu_platform::scheduling {

// Returns where a request for a part gets it now; nothing if no GPU has room for it. It goes to the
// fullest GPU that jobs have parts of and that has room. Else it opens the GPU that a job of one
// GPU would get, which keeps the parts of a site on few nodes. Each time the modes are tried in the
// site's order. Ties go to the lower node and index.
//
// Cost: O(log GPUs) and the GPUs in parts that are passed over for what their nodes lack; to open
// one, the groups and nodes that are passed over.
std::optional<model::Allocation> place_part(const Cluster& cluster,
                                            const model::ResourceRequest& request,
                                            const GpuFilter& filter);

// Returns false only if no node that is up could give the part if nothing else ran on it.
bool some_node_up_could_share(const Cluster& cluster, const model::ResourceRequest& request,
                              const GpuFilter& filter);

}  // namespace gpu_platform::scheduling
