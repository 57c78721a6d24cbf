#include "scheduling/placement/by_load.h"

#include <algorithm>
#include <cstdint>
#include <set>

namespace gpu_platform::scheduling {

namespace {

// The GPUs beyond the level, and those that are of no use to the request.
GpuMask out_of_reach(const LoadLevels& loads, std::uint8_t level,
                     const model::ResourceRequest& request) {
  GpuMask gpus = 0;
  for (std::size_t i = 0; i < loads.size(); ++i) {
    if (loads[i].level > level || !is_of_use(loads[i].memory_free, request))
      gpus |= GpuMask{1} << i;
  }
  return gpus;
}

// Ascending. Nodes without any load are of level 0.
std::set<std::uint8_t> levels_of(const Cluster& cluster, const model::ResourceRequest& request) {
  std::set<std::uint8_t> levels{0};
  for (const model::NodeId node : cluster.nodes_with_load()) {
    for (const LoadLevel& load : cluster.find(node)->loads) {
      if (is_of_use(load.memory_free, request)) levels.insert(load.level);
    }
  }
  return levels;
}

}  // namespace

std::optional<model::Allocation> place_by_load(
    Trial& trial, const model::ResourceRequest& request,
    const std::function<std::optional<model::Allocation>()>& place_now) {
  const Cluster& cluster = trial.cluster();
  if (request.gpus == 0 || cluster.nodes_with_load().empty()) return place_now();
  for (const std::uint8_t level : levels_of(cluster, request)) {
    const Trial::Mark mark = trial.mark();
    for (const model::NodeId node : cluster.nodes_with_load()) {
      trial.withhold_gpus(node, out_of_reach(cluster.find(node)->loads, level, request));
    }
    std::optional<model::Allocation> allocation = place_now();
    trial.rollback_to(mark);
    if (allocation) return allocation;
  }
  return std::nullopt;
}

}  // namespace gpu_platform::scheduling
