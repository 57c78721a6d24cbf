#include "scheduling/gang/candidates.h"

#include <algorithm>
#include <iterator>
#include <optional>

namespace gpu_platform::scheduling {

namespace {

// The values that all nodes of a shape share.
struct Part {
  const ShapeClass& shape_class;
  Demand demand;
  std::uint32_t gpus = 0;
  PlacementRank widest = PlacementRank::kNvLink;
  const GpuFilter& filter;
};

std::optional<Candidate> candidate_of(const Part& part, const GroupKey& key, const Group& group) {
  if (key.free_gpus < part.gpus || key.cpus < part.demand.cpus) return std::nullopt;
  if (key.memory < part.demand.memory) return std::nullopt;
  const auto gpus = choose_gpus(part.shape_class, key.gpus, part.gpus, part.widest, part.filter);
  if (!gpus) return std::nullopt;
  return Candidate{.score = {.rank = gpus->rank,
                             .gpus = key.free_gpus - part.gpus,
                             .cpus = key.cpus - part.demand.cpus,
                             .memory = key.memory - part.demand.memory},
                   .shape_class = &part.shape_class,
                   .group = &group,
                   .only = {},
                   .demand = part.demand,
                   .gpus = *gpus};
}

std::optional<Part> part_from(const ShapeClass& shape_class, const model::ResourceRequest& request,
                              const GpuFilter& filter) {
  if (shape_class.nodes_up == 0 || !could_hold(shape_class, request, filter)) return std::nullopt;
  return Part{.shape_class = shape_class,
              .demand = demand_on_shape(shape_class, request),
              .gpus = request.gpus,
              .widest = request.gpus < 2 ? PlacementRank::kNvLink
                                         : widest_rank(shape_class, request, filter),
              .filter = filter};
}

void add_groups(const Part& part, std::vector<Candidate>& found) {
  const GroupTree& groups = part.shape_class.groups;
  const GroupNeed need{.memory = part.demand.memory, .gpus = part.gpus, .rank = part.widest};
  GroupKey from{part.gpus, 0, {}, 0};
  while (true) {
    const auto group = first_with(groups, from, need);
    if (group == groups.end()) return;
    if (auto candidate = candidate_of(part, group->first, group->second)) {
      found.push_back(*std::move(candidate));
    }
    const auto next = std::next(group);
    if (next == groups.end()) return;
    from = next->first;
  }
}

void add_listed(const Cluster& cluster, const model::ResourceRequest& request,
                const GpuFilter& filter, std::vector<Candidate>& found) {
  for (const model::NodeId id : request.nodelist) {
    const Cluster::NodeRecord* record = cluster.find(id);
    if (record == nullptr || !record->free.is_up) continue;
    const auto part = part_from(*record->shape_class, request, filter);
    if (!part) continue;
    const auto group = cluster.group_of(*record);
    if (auto candidate = candidate_of(*part, group->first, group->second)) {
      candidate->only = id;
      found.push_back(*std::move(candidate));
    }
  }
}

}  // namespace

std::vector<Candidate> candidates_for(const Cluster& cluster, const model::ResourceRequest& part,
                                      const GpuFilter& filter) {
  std::vector<Candidate> found;
  if (!part.nodelist.empty()) {
    add_listed(cluster, part, filter, found);
  } else {
    for (const auto& [shape, shape_class] : cluster.shapes()) {
      if (const auto on_shape = part_from(shape_class, part, filter)) add_groups(*on_shape, found);
    }
  }
  std::ranges::stable_sort(found, {}, &Candidate::score);
  return found;
}

}  // namespace gpu_platform::scheduling
