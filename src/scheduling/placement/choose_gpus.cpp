#include "scheduling/placement/choose_gpus.h"

#include <algorithm>
#include <bit>
#include <tuple>
#include <utility>
#include <vector>

namespace gpu_platform::scheduling {

namespace {

bool has_gpus_when_empty(const ShapeClass& shape_class, const model::ResourceRequest& request,
                         const GpuFilter& filter, GpuMask allowed) {
  if (request.gpus == 0) return true;
  const GpuDomains& domains = shape_class.subsets->chooser().layout().domains;
  const bool is_strict = request.numa == model::NumaPolicy::kStrict;
  bool enough = false;
  filter.for_each_type(shape_class, [&](GpuMask all) {
    const GpuMask of_type = all & allowed;
    const std::uint32_t most = is_strict ? max_in_one(domains.sockets, of_type) : size_of(of_type);
    enough = enough || most >= request.gpus;
  });
  return enough;
}

std::vector<model::GpuGrant> grants_on(const NodeShape& shape, GpuMask gpus) {
  std::vector<model::GpuGrant> grants;
  grants.reserve(static_cast<std::size_t>(std::popcount(gpus)));
  for (; gpus != 0; gpus &= gpus - 1) {
    const auto index = static_cast<std::uint32_t>(std::countr_zero(gpus));
    grants.push_back({index, base::kWholeGpu, shape.gpus[index].memory});
  }
  return grants;
}

}  // namespace

Demand demand_on_shape(const ShapeClass& shape_class, const model::ResourceRequest& request) {
  const NodeShape& shape = *shape_class.shape;
  return demand_on(request, {.cpus = shape.cpus,
                             .memory = shape.memory,
                             .gpus = static_cast<std::uint32_t>(shape.gpus.size())});
}

std::optional<Subset> choose_gpus(const ShapeClass& shape_class, GpuMask free, std::uint32_t count,
                                  PlacementRank widest, const GpuFilter& filter) {
  if (count == 0) return Subset{};
  using Key = std::tuple<PlacementRank, std::uint32_t, int>;
  std::optional<Subset> best;
  Key best_key;
  filter.for_each_type(shape_class, [&](GpuMask of_type) {
    const GpuMask eligible = of_type & free;
    if (size_of(eligible) < count) return;
    const Subset subset = shape_class.subsets->best(eligible, count);
    const Key key{subset.rank, size_of(eligible), std::countr_zero(subset.gpus)};
    if (subset.rank > widest || (best.has_value() && best_key <= key)) return;
    best = subset;
    best_key = key;
  });
  return best;
}

PlacementRank widest_rank(const ShapeClass& shape_class, const model::ResourceRequest& request,
                          const GpuFilter& filter) {
  switch (model::numa_of(request)) {
    case model::NumaPolicy::kAllowCross:
      return PlacementRank::kAcrossSockets;
    case model::NumaPolicy::kStrict:
      return PlacementRank::kSocket;
    case model::NumaPolicy::kDefault:
      break;
  }
  const GpuDomains& domains = shape_class.subsets->chooser().layout().domains;
  std::uint32_t largest = 0;
  filter.for_each_type(shape_class, [&](GpuMask of_type) {
    largest = std::max(largest, max_in_one(domains.numa, of_type));
  });
  return request.gpus > largest ? PlacementRank::kAcrossSockets : PlacementRank::kSocket;
}

bool could_hold(const ShapeClass& shape_class, const model::ResourceRequest& request,
                const GpuFilter& filter, GpuMask allowed) {
  const NodeShape& shape = *shape_class.shape;
  if (!may_use(request, shape)) return false;
  const Demand demand = demand_on_shape(shape_class, request);
  return demand.cpus <= shape.cpus && demand.memory <= shape.memory &&
         has_gpus_when_empty(shape_class, request, filter, allowed);
}

model::NodeAllocation part_of_allocation(model::NodeId node, const ShapeClass& shape_class,
                                         const Subset& gpus, const Demand& demand) {
  return {.node = node,
          .grants = grants_on(*shape_class.shape, gpus.gpus),
          .cpus = demand.cpus,
          .memory = demand.memory,
          .level = shape_class.subsets->chooser().level_of(gpus)};
}

}  // namespace gpu_platform::scheduling
