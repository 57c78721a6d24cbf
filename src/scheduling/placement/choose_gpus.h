#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "model/allocation.h"
#include "model/job.h"
#include "scheduling/cluster.h"
#include "scheduling/placement/best_subset.h"
#include "scheduling/placement/demand.h"

// The choice of GPUs on nodes of one shape, for a request or for one part of a gang.

namespace gpu_platform::scheduling {

// The GPUs that a request accepts by type and memory, compared by number instead of name. It refers
// into `types`, so it is used for one decision, while no node is added.
class GpuFilter {
 public:
  // Accepts all types of the request, or only the one at index `choice`.
  GpuFilter(const model::ResourceRequest& request, const GpuTypes& types,
            std::optional<std::size_t> choice = std::nullopt)
      : least_memory_(request.gpu_memory) {
    for (std::size_t i = 0; i < request.gpu_types.size(); ++i) {
      if (!choice || *choice == i) accepted_.push_back(&types.accepted_by(request.gpu_types[i]));
    }
    for (const std::string& type : request.barred_types) {
      if (const auto number = types.find(type)) barred_.push_back(*number);
    }
  }
  // The same for this type alone.
  GpuFilter only(TypeIndex type) const {
    GpuFilter copy = *this;
    copy.only_ = type;
    return copy;
  }

  bool accepts(TypeIndex type) const {
    if (only_ && *only_ != type) return false;
    if (std::ranges::find(barred_, type) != barred_.end()) return false;
    return accepted_.empty() ||
           std::ranges::any_of(accepted_, [&](const auto* types) { return (*types)[type]; });
  }

  // Calls visit(GpuMask) for each acceptable type of the shape, with those of its GPUs that have
  // enough memory (perhaps none). The order of types means nothing.
  template <class Visit>
  void for_each_type(const ShapeClass& shape_class, Visit&& visit) const {
    const std::vector<GpuPool>& pools = shape_class.pools;
    for (std::size_t i = 0; i < pools.size();) {
      const TypeIndex type = pools[i].type;
      GpuMask gpus = 0;
      for (; i < pools.size() && pools[i].type == type; ++i) {
        if (pools[i].memory >= least_memory_) gpus |= pools[i].gpus;
      }
      if (accepts(type)) visit(gpus);
    }
  }

 private:
  base::Bytes least_memory_;
  std::optional<TypeIndex> only_;
  std::vector<const std::vector<bool>*> accepted_;  // a row per name asked for; empty: any type
  std::vector<TypeIndex> barred_;                   // but these
};

Demand demand_on_shape(const ShapeClass& shape_class, const model::ResourceRequest& request);

// Returns the best GPUs among `free` for the request, not beyond `widest`. Among types that rank
// equally it takes the one with the fewest GPUs left over, then the lowest index. Nothing if there
// are too few.
std::optional<Subset> choose_gpus(const ShapeClass& shape_class, GpuMask free, std::uint32_t count,
                                  PlacementRank widest, const GpuFilter& filter);

// Returns the widest rank at which a node of this shape may give the request its GPUs. It is
// "across sockets" only if the request allows it, or if none of the node's NUMA domains has enough
// of the GPUs that it accepts, in use or not; never if the request is strict.
PlacementRank widest_rank(const ShapeClass& shape_class, const model::ResourceRequest& request,
                          const GpuFilter& filter);

// Returns whether a node of this shape could hold the request if nothing else ran on it, on GPUs of
// `allowed` alone.
bool could_hold(const ShapeClass& shape_class, const model::ResourceRequest& request,
                const GpuFilter& filter, GpuMask allowed = ~GpuMask{0});

// Returns a node's part of an allocation: these GPUs, whole, and the CPUs and memory that go with
// them.
model::NodeAllocation part_of_allocation(model::NodeId node, const ShapeClass& shape_class,
                                         const Subset& gpus, const Demand& demand);

}  // namespace gpu_platform::scheduling
