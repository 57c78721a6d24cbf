#pragma once

#include <cstdint>
#include <optional>

#include "model/allocation.h"
#include "model/job.h"
#include "scheduling/cluster.h"
#include "scheduling/placement/gpu_filter.h"

namespace gpu_platform::scheduling {

// Nodes and GPUs for so many equal parts, each on a node of its own and as the request asks of one
// node: all of them or nothing. All GPUs are of one type.
//
// The parts lie within one domain where one has room for all, else within one rack, else one zone,
// else anywhere; the request's `within` ends that list earlier. Of several domains (racks, zones)
// the one with the fewest nodes that could give a part, so that those where larger gangs fit stay
// whole; then the first by name. Past one domain the parts lie in as few of the next nearer level
// as that comes to by taking the largest first. Of several types the one that is together nearest,
// then fits best; then the first by name. Within a place the best nodes come first, as for jobs of
// one node (choose_node.h), and ties end with the node's id.
//
// Cost: by groups of equal nodes and by places, and O(log) for each part; nodes are not visited.
std::optional<model::Allocation> place_gang(const Cluster& cluster,
                                            const model::ResourceRequest& part, std::uint32_t parts,
                                            const GpuFilter& filter);

}  // namespace gpu_platform::scheduling
