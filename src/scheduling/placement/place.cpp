#include "scheduling/placement/place.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "scheduling/gang/place_gang.h"
#include "scheduling/placement/choose_gpus.h"

namespace gpu_platform::scheduling {

namespace {

struct NodeChoice {
  model::NodeId node;
  const ShapeClass* shape_class = nullptr;  // of the cluster
  Demand demand;
  Subset gpus;  // none where the request has none
};

// The criteria between nodes; the smallest is the best.
struct Score {
  PlacementRank rank = PlacementRank::kNvLink;
  std::uint32_t gpus = 0;  // what would be left free, here and below
  std::uint32_t cpus = 0;
  base::Bytes memory;
  model::NodeId node;

  friend auto operator<=>(const Score&, const Score&) = default;
};

// The inputs of the search in the groups of one shape.
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

// Returns the first group that has room, in the order of best fit. Each search either finds the
// CPUs too or leaps to their first group with the next larger number of free GPUs, so searches are
// few.
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

// Keeps the best node of one shape at `search.rank` or better if it is better than `best`. Returns
// false if there is none.
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
    best = NodeChoice{score.node, &search.shape_class, search.demand, *gpus};
  }
  return true;
}

// Returns the node and the GPUs on it. The rank of the GPUs decides first, so that a node where
// they fit into one NUMA node goes before one where they do not. Then the node that keeps the
// fewest free GPUs is chosen, then the fewest free CPUs, then the least free memory; ties go to the
// lowest id. Nothing if no node that is up has enough free now. Cost: by shapes and groups of equal
// nodes, not by nodes.
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

// Returns how many nodes that are up could give this part if nothing else ran on them.
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
  model::ResourceRequest of_engine = request;
  for (const model::EngineKind kind : model::kinds_in(request.engines)) {
    of_engine.engines = model::EngineSet::of(kind);
    for_each_split(of_engine, cluster.nodes_up(), [&](const auto& part, std::uint32_t parts) {
      could = could || nodes_up_for(cluster, part) >= parts;
      return !could;
    });
  }
  return could;
}

}  // namespace gpu_platform::scheduling
