#include "scheduling/placement/place.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "scheduling/gang/place_gang.h"
#include "scheduling/placement/by_load.h"
#include "scheduling/placement/choose_gpus.h"
#include "scheduling/placement/place_part.h"

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

std::optional<model::Allocation> place_any_choice(const Cluster& cluster,
                                                  const model::ResourceRequest& request) {
  for (std::size_t choice = 0; choice < gpu_choices(request); ++choice) {
    if (auto allocation = place_choice(cluster, request, choice)) return allocation;
  }
  return std::nullopt;
}

// Returns the request for the nodes of the only GPUs that it may have, so that no other node needs
// to be looked at; nothing if it may use none of them.
std::optional<model::ResourceRequest> near_only_gpus(const Cluster& cluster,
                                                     const model::ResourceRequest& request) {
  model::ResourceRequest near = request;
  near.numa = model::numa_of(request);
  near.nodelist.clear();
  near.gpus_only.clear();
  for (const auto& [node, gpus] : cluster.gpu_names().masks_of(request.gpus_only)) {
    const bool is_named =
        request.nodelist.empty() || std::ranges::binary_search(request.nodelist, node);
    if (is_named) near.nodelist.push_back(node);
  }
  if (near.nodelist.empty()) return std::nullopt;
  return near;
}

// Returns how many nodes that are up could give this part if nothing else ran on them.
std::uint64_t nodes_up_for(const Cluster& cluster, const model::ResourceRequest& part) {
  const GpuFilter filter(part, cluster.types());
  const GpuNames::Masks avoided = cluster.gpu_names().masks_of(part.gpus_avoid);
  const auto could_without = [&](model::NodeId id, GpuMask gpus) {
    const Cluster::NodeRecord* record = cluster.find(id);
    return record != nullptr && record->free.is_up &&
           could_hold(*record->shape_class, part, filter, ~gpus);
  };
  const auto is_excluded = [&](model::NodeId id) {
    return std::ranges::binary_search(part.exclude, id);
  };
  if (!part.nodelist.empty()) {
    return static_cast<std::uint64_t>(std::ranges::count_if(part.nodelist, [&](model::NodeId id) {
      const auto gpus = avoided.find(id);
      return could_without(id, gpus == avoided.end() ? 0 : gpus->second) && !is_excluded(id);
    }));
  }
  std::uint64_t nodes = 0;
  for (const auto& [shape, shape_class] : cluster.shapes()) {
    if (shape_class.nodes_up == 0 || !could_hold(shape_class, part, filter)) continue;
    nodes += shape_class.nodes_up;
  }
  nodes -= static_cast<std::uint64_t>(
      std::ranges::count_if(part.exclude, [&](model::NodeId id) { return could_without(id, 0); }));
  return nodes - static_cast<std::uint64_t>(std::ranges::count_if(avoided, [&](const auto& each) {
           const auto& [id, gpus] = each;
           return !is_excluded(id) && could_without(id, 0) && !could_without(id, gpus);
         }));
}

}  // namespace

std::optional<model::Allocation> place(Trial& trial, const model::ResourceRequest& request) {
  const Trial::Mark mark = trial.mark();
  withhold_excluded(trial, request);
  const auto place_now = [&] { return place_any_choice(trial.cluster(), request); };
  std::optional<model::Allocation> allocation = place_by_load(trial, request, place_now);
  if (!allocation && may_try_degraded(trial.cluster(), request)) {
    trial.expose_degraded();
    allocation = place_by_load(trial, request, place_now);
  }
  trial.rollback_to(mark);
  return allocation;
}

std::optional<model::Allocation> place(const Cluster& cluster,
                                       const model::ResourceRequest& request) {
  CHECK(request.exclude.empty() && !model::names_gpus(request));
  return place_any_choice(cluster, request);
}

void withhold_excluded(Trial& trial, const model::ResourceRequest& request) {
  for (const model::NodeId node : request.exclude) trial.shut(node);
  const GpuNames& names = trial.cluster().gpu_names();
  for (const auto& [node, gpus] : names.masks_of(request.gpus_avoid)) {
    trial.withhold_gpus(node, gpus);
  }
  for (const auto& [node, gpus] : names.masks_of(request.gpus_only)) {
    trial.withhold_gpus(node, ~gpus);
  }
}

bool may_try_degraded(const Cluster& cluster, const model::ResourceRequest& request) {
  return request.accept_degraded && request.gpus > 0 && !cluster.nodes_with_degraded().empty();
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
  if (!request.gpus_only.empty()) {
    const auto near = near_only_gpus(cluster, request);
    return near ? place_choice(cluster, *near, choice) : std::nullopt;
  }
  const GpuFilter filter(request, cluster.types(), choice);
  std::optional<model::Allocation> allocation;
  if (model::is_part(request)) {
    allocation = place_part(cluster, request, filter);
    if (allocation) allocation->speed = speed_of_choice(request, choice);
    return allocation;
  }
  for_each_split(request, cluster.nodes_up(), [&](const auto& part, std::uint32_t parts) {
    allocation = parts == 1 && part.nodelist.empty() ? place_on_one(cluster, part, filter)
                                                     : place_gang(cluster, part, parts, filter);
    return !allocation;
  });
  if (allocation) allocation->speed = speed_of_choice(request, choice);
  return allocation;
}

bool some_node_up_could_hold(const Cluster& cluster, const model::ResourceRequest& request) {
  if (!request.gpus_only.empty()) {
    const auto near = near_only_gpus(cluster, request);
    return near && some_node_up_could_hold(cluster, *near);
  }
  if (model::is_part(request)) {
    return some_node_up_could_share(cluster, request, GpuFilter(request, cluster.types()));
  }
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
