#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "model/allocation.h"
#include "model/job.h"
#include "model/resource_request.h"
#include "scheduling/cluster.h"
#include "scheduling/placement/choose_gpus.h"

namespace gpu_platform::scheduling {

// Calls visit(request of one part, parts) for each way to divide the request over nodes, fewest
// nodes first, until it returns false. There is one way, except for cross_node, which has equal
// parts: most programs on several nodes want the same number of processes on each. Ways that take
// more than `max_nodes` nodes are left out, unless there is only one.
template <class Visit>
void for_each_split(const model::ResourceRequest& request, std::uint64_t max_nodes, Visit&& visit) {
  if (!request.cross_node) {
    visit(request, request.nodes);
    return;
  }
  model::ResourceRequest part = request;
  part.cross_node = false;
  const std::uint64_t most = std::min<std::uint64_t>(
      {request.gpus, std::max<std::uint64_t>(1, max_nodes), model::kMaxGangNodes});
  for (std::uint32_t parts = 1; parts <= most; ++parts) {
    if (request.gpus % parts != 0) continue;
    part.gpus = request.gpus / parts;
    if (!visit(std::as_const(part), parts)) return;
  }
}

// Returns nodes and GPUs for a number of equal parts, each on a node of its own and as the request
// asks of one node: all of them or nothing. All GPUs are of one type, and all nodes of one engine.
//
// The parts lie within one domain if one has room for all, else within one rack, else one zone,
// else anywhere; the request's `within` ends that list earlier. Among several domains (racks,
// zones) the one with the fewest nodes that could give a part is taken, so that places where larger
// gangs fit stay whole; then the first by name. Beyond one domain the parts fill the largest places
// of the next nearer level first, so that they use few of them. Among several engines
// and types the one with the nearest parts is taken, then the one that fits best, then the first
// engine, then the first type by name. Within a place
// the best nodes come first, as for jobs on one node (place.cpp). Ties end with the node's id.
//
// Cost: by groups of equal nodes and by places, and O(log) for each part; nodes are not visited.
std::optional<model::Allocation> place_gang(const Cluster& cluster,
                                            const model::ResourceRequest& part, std::uint32_t parts,
                                            const GpuFilter& filter);

}  // namespace gpu_platform::scheduling
