#pragma once

#include <optional>

#include "model/allocation.h"
#include "model/job.h"
#include "scheduling/cluster.h"

namespace gpu_platform::scheduling {

// The node and GPUs that a request gets now, whole or not at all; nothing where it does not fit.
// All GPUs are on one node. A gang across nodes is placed part by part inside a Trial with a mark
// to return to: it will stand beside this, in gang/, and use it for each part. Requests for less
// than a whole GPU are refused before they reach the queue.
std::optional<model::Allocation> place(const Cluster& cluster,
                                       const model::ResourceRequest& request);

// Whether some node that is up could hold the request if nothing else ran on it.
bool some_node_up_could_hold(const Cluster& cluster, const model::ResourceRequest& request);

}  // namespace gpu_platform::scheduling
