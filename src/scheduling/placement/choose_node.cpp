#include "scheduling/placement/choose_node.h"

#include <algorithm>
#include <iterator>

namespace gpu_platform::scheduling {

namespace {

// What decides between nodes; the smallest is the best.
struct Score {
  PlacementRank rank = PlacementRank::kNvLink;
  std::uint32_t gpus = 0;  // what would be left free, here and below
  std::uint32_t cpus = 0;
  base::Bytes memory;
  model::NodeId node;

  friend auto operator<=>(const Score&, const Score&) = default;
};

// What is searched in the groups of one shape.
struct ShapeSearch {
  const ShapeClass& shape_class;
  Demand demand;
  std::uint32_t gpus = 0;
  PlacementRank rank = PlacementRank::kNvLink;  // at this one or better
  const GpuFilter& filter;

  std::optional<Subset> gpus_of(const GroupKey& key) const {
    return choose_gpus(shape_class, key.gpus, gpus, rank, filter);
  }
  GroupTree::const_iterator first_fit() const;
};

// The first group in the order of best fit that has room. Each search either finds the CPUs too or
// leaps to where they begin among the next larger number of free GPUs, so there are few.
GroupTree::const_iterator ShapeSearch::first_fit() const {
  const GroupTree& groups = shape_class.groups;
  const GroupNeed need{.memory = demand.memory, .gpus = gpus, .rank = rank};
  GroupKey from{gpus, demand.cpus, demand.memory, 0};
  while (true) {
    const auto group = first_with(groups, from, need);
    if (group == groups.end()) return group;
    const GroupKey& key = group->first;
    if (key.cpus < demand.cpus) {
      from = {key.free_gpus, demand.cpus, demand.memory, 0};
    } else if (!gpus_of(key).has_value()) {
      const auto next = std::next(group);
      if (next == groups.end()) return next;
      from = next->first;
    } else {
      return group;
    }
  }
}

bool is_same_fit(const GroupKey& a, const GroupKey& b) {
  return a.free_gpus == b.free_gpus && a.cpus == b.cpus && a.memory == b.memory;
}

// The best node of one shape at `search.rank` or better, kept where it is better than `best`.
// False when there is none.
bool consider(const ShapeSearch& search, std::optional<NodeChoice>& best, Score& best_score) {
  const GroupTree& groups = search.shape_class.groups;
  auto group = search.first_fit();
  if (group == groups.end()) return false;
  // Groups that differ only in which GPUs are free follow each other: the lowest id of all wins.
  for (const auto first = group; group != groups.end() && is_same_fit(group->first, first->first);
       ++group) {
    const GroupKey& key = group->first;
    const Score score{.rank = search.rank,
                      .gpus = key.free_gpus - search.gpus,
                      .cpus = key.cpus - search.demand.cpus,
                      .memory = key.memory - search.demand.memory,
                      .node = group->second.nodes.begin()->first};
    if (best.has_value() && best_score <= score) continue;
    const std::optional<Subset> gpus = search.gpus_of(key);
    if (!gpus.has_value()) continue;
    best_score = score;
    best = NodeChoice{score.node, &search.shape_class, key.gpus, search.demand, *gpus};
  }
  return true;
}

}  // namespace

std::optional<NodeChoice> choose_node(const Cluster& cluster, const model::ResourceRequest& request,
                                      const GpuFilter& filter) {
  std::optional<NodeChoice> best;
  Score best_score;
  // Fewer than two GPUs always have the best rank.
  PlacementRank last = request.gpus < 2 ? PlacementRank::kNvLink : PlacementRank::kAcrossSockets;
  for (const auto& [shape, shape_class] : cluster.shapes()) {
    if (shape_class.nodes_up == 0 || !could_hold(shape_class, request, filter)) continue;
    ShapeSearch search{.shape_class = shape_class,
                       .demand = demand_on_shape(shape_class, request),
                       .gpus = request.gpus,
                       .filter = filter};
    const PlacementRank widest =
        request.gpus < 2 ? last : std::min(last, widest_rank(shape_class, request, filter));
    for (const PlacementRank rank : kAllRanks) {
      if (rank > widest) break;
      if (request.gpus > 1 && !shape_class.subsets->chooser().has_rank(rank)) continue;
      search.rank = rank;
      if (!consider(search, best, best_score)) continue;
      // A worse rank helps neither here nor on the shapes to come.
      last = rank;
      break;
    }
  }
  return best;
}

}  // namespace gpu_platform::scheduling
