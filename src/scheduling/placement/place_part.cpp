#include "scheduling/placement/place_part.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

namespace gpu_platform::scheduling {

namespace {

using model::ShareMode;

// One decision about one request.
class PartPlacing {
 public:
  PartPlacing(const Cluster& cluster, const model::ResourceRequest& request,
              const GpuFilter& filter)
      : cluster_(cluster), request_(request), filter_(filter) {
    for (TypeIndex type = 0; type < cluster.types().size(); ++type) {
      if (filter.accepts(type)) types_.push_back(type);
    }
  }

  std::optional<model::Allocation> join(ShareMode mode) const;
  std::optional<model::Allocation> open(ShareMode mode) const;

 private:
  // What decides between GPUs to open; the smallest is the best. The same as for whole GPUs.
  using Score = std::tuple<std::uint32_t, std::uint32_t, base::Bytes, model::NodeId>;
  struct Opened {
    model::NodeId node;
    const ShapeClass* shape_class = nullptr;  // of the cluster
    const model::Wall* wall = nullptr;
    Subset gpu;
    Demand demand;
  };

  bool may_use(model::NodeId node) const {
    return request_.nodelist.empty() || std::ranges::binary_search(request_.nodelist, node);
  }
  // Returns the wall of such a part on the node; null if it gives none that suffices.
  const model::Wall* wall_on(const Cluster::NodeRecord& record, ShareMode mode) const {
    const model::Wall* wall = record.terms.wall(mode, request_.tenant);
    return wall != nullptr && is_strong_enough(*wall, request_) ? wall : nullptr;
  }
  model::Allocation allocation_of(const Opened& place, ShareMode mode) const;
  void open_in_shape(const ShapeClass& shape_class, ShareMode mode, std::optional<Opened>& best,
                     Score& best_score) const;

  const Cluster& cluster_;
  const model::ResourceRequest& request_;
  const GpuFilter& filter_;
  std::vector<TypeIndex> types_;
};

model::Allocation PartPlacing::allocation_of(const Opened& place, ShareMode mode) const {
  model::NodeAllocation part =
      part_of_allocation(place.node, *place.shape_class, place.gpu, place.demand);
  model::GpuGrant& grant = part.grants.front();
  grant.share = request_.share_per_gpu;
  grant.memory = memory_of_part(request_, grant.memory);
  grant.mode = mode;
  grant.wall = *place.wall;
  model::Allocation allocation;
  allocation.nodes.push_back(std::move(part));
  allocation.tenant = request_.tenant;
  return allocation;
}

std::optional<model::Allocation> PartPlacing::join(ShareMode mode) const {
  const PartIndex& index = cluster_.gpu_parts();
  if (index.empty()) return std::nullopt;
  std::optional<model::Allocation> found;
  index.any_of_fullest({types_, mode, request_.tenant, request_.share_per_gpu},
                       [&](const model::GpuRef& gpu, const PartState& state) {
                         const Cluster::NodeRecord& record = *cluster_.find(gpu.node);
                         const ShapeClass& shape_class = *record.shape_class;
                         const NodeShape& shape = *shape_class.shape;
                         const model::Wall* wall = wall_on(record, mode);
                         if (!record.free.is_up || wall == nullptr || !may_use(gpu.node) ||
                             !scheduling::may_use(request_, shape)) {
                           return false;
                         }
                         const base::Bytes memory =
                             memory_of_part(request_, shape.gpus[gpu.index].memory);
                         const Demand demand = demand_on_shape(shape_class, request_);
                         if (memory > state.free_memory || demand.cpus > record.free.cpus ||
                             demand.memory > record.free.memory) {
                           return false;
                         }
                         const Subset one{.gpus = GpuMask{1} << gpu.index};
                         found = allocation_of({gpu.node, &shape_class, wall, one, demand}, mode);
                         return true;
                       });
  return found;
}

// Keeps the best GPU of the shape if it is better than `best`. The first group with a GPU to open
// has the best fit, and groups of the same fit follow each other.
void PartPlacing::open_in_shape(const ShapeClass& shape_class, ShareMode mode,
                                std::optional<Opened>& best, Score& best_score) const {
  const Demand demand = demand_on_shape(shape_class, request_);
  std::optional<std::tuple<std::uint32_t, std::uint32_t, base::Bytes>> fit;
  const GroupTree& groups = shape_class.groups;
  for (auto group = groups.lower_bound(GroupKey{1, 0, {}, 0}); group != groups.end(); ++group) {
    const GroupKey& key = group->first;
    const std::tuple of_group{key.free_gpus, key.cpus, key.memory};
    if (fit && of_group != *fit) return;
    if (key.cpus < demand.cpus || key.memory < demand.memory) continue;
    for (const auto& [id, leaf] : group->second.nodes) {
      const Cluster::NodeRecord& record = *cluster_.find(id);
      const model::Wall* wall = wall_on(record, mode);
      if (wall == nullptr || !may_use(id)) continue;
      const auto gpu = choose_gpus(shape_class, key.gpus & record.terms.gpus_in(mode), 1,
                                   PlacementRank::kNvLink, filter_);
      if (!gpu) continue;
      fit = of_group;
      const Score score{key.free_gpus - 1, key.cpus - demand.cpus, key.memory - demand.memory, id};
      if (!best || score < best_score) {
        best_score = score;
        best = Opened{id, &shape_class, wall, *gpu, demand};
      }
      break;
    }
  }
}

std::optional<model::Allocation> PartPlacing::open(ShareMode mode) const {
  std::optional<Opened> best;
  Score best_score;
  for (const auto& [shape, shape_class] : cluster_.shapes()) {
    if (shape_class.nodes_up == 0 || shape_class.sharing_nodes == 0 ||
        !could_hold(shape_class, request_, filter_)) {
      continue;
    }
    open_in_shape(shape_class, mode, best, best_score);
  }
  if (!best) return std::nullopt;
  return allocation_of(*best, mode);
}

// Returns whether a node of the shape that is up gives a part of root's in one of the modes. Where
// the site accepts no advisory walls, none does: such a job must not hold up the queue.
bool gives_to_root(const Cluster& cluster, const ShapeClass& shape_class,
                   const model::ResourceRequest& request, const std::vector<ShareMode>& modes) {
  for (const auto& [key, group] : shape_class.groups) {
    for (const auto& [id, leaf] : group.nodes) {
      const Cluster::NodeRecord& record = *cluster.find(id);
      const bool gives = std::ranges::any_of(modes, [&](ShareMode mode) {
        return record.terms.wall(mode, request.tenant) != nullptr;
      });
      if (gives) return true;
    }
  }
  return false;
}

}  // namespace

std::optional<model::Allocation> place_part(const Cluster& cluster,
                                            const model::ResourceRequest& request,
                                            const GpuFilter& filter) {
  const std::vector<ShareMode> modes = modes_for(cluster.sharing(), request);
  const PartPlacing placing(cluster, request, filter);
  for (const ShareMode mode : modes) {
    if (auto allocation = placing.join(mode)) return allocation;
  }
  for (const ShareMode mode : modes) {
    if (auto allocation = placing.open(mode)) return allocation;
  }
  return std::nullopt;
}

bool some_node_up_could_share(const Cluster& cluster, const model::ResourceRequest& request,
                              const GpuFilter& filter) {
  const std::vector<ShareMode> modes = modes_for(cluster.sharing(), request);
  if (modes.empty()) return false;
  return std::ranges::any_of(cluster.shapes(), [&](const auto& entry) {
    const ShapeClass& shape_class = entry.second;
    return shape_class.nodes_up > 0 && shape_class.sharing_nodes > 0 &&
           could_hold(shape_class, request, filter) &&
           (!model::is_root(request.tenant) || gives_to_root(cluster, shape_class, request, modes));
  });
}

}  // namespace gpu_platform::scheduling
