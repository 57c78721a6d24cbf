#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "model/job.h"

namespace gpu_platform::scheduling {

// Calls visit(request of one part, parts) for each way to divide the request over nodes, fewest
// nodes first, until it returns false. There is one way but for cross_node, whose parts are equal:
// what runs on several nodes mostly wants the same number of processes on each. Ways that take more
// than `max_nodes` are left out, but for the only one.
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

}  // namespace gpu_platform::scheduling
