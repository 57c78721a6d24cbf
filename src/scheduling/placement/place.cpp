#include "scheduling/placement/place.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "scheduling/gang/place_gang.h"
#include "scheduling/gang/split.h"
#include "scheduling/placement/choose_node.h"
#include "scheduling/placement/gpu_filter.h"
#include "scheduling/placement/grants.h"

namespace gpu_platform::scheduling {

namespace {

std::optional<model::Allocation> place_on_one(const Cluster& cluster,
                                              const model::ResourceRequest& request,
                                              const GpuFilter& filter) {
  const std::optional<NodeChoice> choice = choose_node(cluster, request, filter);
  if (!choice.has_value()) return std::nullopt;
  model::Allocation allocation;
  allocation.nodes.push_back(
      part_of_allocation(choice->node, *choice->shape_class, choice->gpus, choice->demand));
  return allocation;
}

// How many nodes that are up could give this part, if nothing else ran on them.
std::uint64_t nodes_up_for(const Cluster& cluster, const model::ResourceRequest& part) {
  const GpuFilter filter(part, cluster.types());
  const auto counts = [&](model::NodeId id) {
    const Cluster::NodeRecord* record = cluster.find(id);
    return record != nullptr && record->free.is_up &&
           could_hold(*record->shape_class, part, filter);
  };
  if (!part.nodelist.empty()) {
    return static_cast<std::uint64_t>(std::ranges::count_if(part.nodelist, [&](model::NodeId id) {
      return counts(id) && !std::ranges::binary_search(part.exclude, id);
    }));
  }
  std::uint64_t nodes = 0;
  for (const auto& [shape, shape_class] : cluster.shapes()) {
    if (shape_class.nodes_up == 0 || !could_hold(shape_class, part, filter)) continue;
    nodes += shape_class.nodes_up;
  }
  return nodes - static_cast<std::uint64_t>(std::ranges::count_if(part.exclude, counts));
}

}  // namespace

std::optional<model::Allocation> place(Trial& trial, const model::ResourceRequest& request) {
  const Trial::Mark mark = trial.mark();
  shut_excluded(trial, request);
  std::optional<model::Allocation> allocation;
  for (std::size_t choice = 0; choice < gpu_choices(request) && !allocation; ++choice) {
    allocation = place_choice(trial.cluster(), request, choice);
  }
  trial.rollback_to(mark);
  return allocation;
}

std::optional<model::Allocation> place(const Cluster& cluster,
                                       const model::ResourceRequest& request) {
  CHECK(request.exclude.empty());
  for (std::size_t choice = 0; choice < gpu_choices(request); ++choice) {
    if (auto allocation = place_choice(cluster, request, choice)) return allocation;
  }
  return std::nullopt;
}

void shut_excluded(Trial& trial, const model::ResourceRequest& request) {
  for (const model::NodeId node : request.exclude) trial.shut(node);
}

std::size_t gpu_choices(const model::ResourceRequest& request) {
  return std::max<std::size_t>(1, request.gpu_types.size());
}

std::uint32_t speed_of_choice(const model::ResourceRequest& request, std::size_t choice) {
  return request.gpu_speeds.empty() ? model::kFullSpeed : request.gpu_speeds.at(choice);
}

std::optional<model::Allocation> place_choice(const Cluster& cluster,
                                              const model::ResourceRequest& request,
                                              std::size_t choice) {
  const GpuFilter filter(request, cluster.types(), choice);
  std::optional<model::Allocation> allocation;
  for_each_split(request, cluster.nodes_up(), [&](const auto& part, std::uint32_t parts) {
    allocation = parts == 1 && part.nodelist.empty() ? place_on_one(cluster, part, filter)
                                                     : place_gang(cluster, part, parts, filter);
    return !allocation;
  });
  if (allocation) allocation->speed = speed_of_choice(request, choice);
  return allocation;
}

bool some_node_up_could_hold(const Cluster& cluster, const model::ResourceRequest& request) {
  bool could = false;
  for_each_split(request, cluster.nodes_up(), [&](const auto& part, std::uint32_t parts) {
    could = nodes_up_for(cluster, part) >= parts;
    return !could;
  });
  return could;
}

}  // namespace gpu_platform::scheduling
