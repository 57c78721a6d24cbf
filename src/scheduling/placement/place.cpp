#include "scheduling/placement/place.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "scheduling/placement/choose_node.h"
#include "scheduling/placement/gpu_filter.h"

namespace gpu_platform::scheduling {

namespace {

std::vector<model::GpuClaim> claims_on(const NodeShape& shape, GpuMask gpus) {
  std::vector<model::GpuClaim> claims;
  claims.reserve(static_cast<std::size_t>(std::popcount(gpus)));
  for (; gpus != 0; gpus &= gpus - 1) {
    const auto index = static_cast<std::uint32_t>(std::countr_zero(gpus));
    claims.push_back({index, base::kWholeGpu, shape.gpus[index].memory});
  }
  return claims;
}

}  // namespace

std::optional<model::Allocation> place(const Cluster& cluster,
                                       const model::ResourceRequest& request) {
  const GpuFilter filter(request, cluster.types());
  const std::optional<NodeChoice> choice = choose_node(cluster, request, filter);
  if (!choice.has_value()) return std::nullopt;
  model::NodeAllocation part{
      .node = choice->node,
      .claims = claims_on(*choice->shape_class->shape, choice->gpus.gpus),
      .cpus = choice->demand.cpus,
      .memory = choice->demand.memory,
      .level = choice->shape_class->subsets->chooser().level_of(choice->gpus)};
  model::Allocation allocation;
  allocation.nodes.push_back(std::move(part));
  return allocation;
}

bool some_node_up_could_hold(const Cluster& cluster, const model::ResourceRequest& request) {
  const GpuFilter filter(request, cluster.types());
  return std::ranges::any_of(cluster.shapes(), [&](const auto& entry) {
    return entry.second.nodes_up > 0 && could_hold(entry.second, request, filter);
  });
}

}  // namespace gpu_platform::scheduling
