#pragma once

#include <optional>

#include "model/job.h"
#include "scheduling/cluster.h"
#include "scheduling/placement/best_subset.h"
#include "scheduling/placement/demand.h"
#include "scheduling/placement/gpu_filter.h"

// What nodes of one shape have for a request, or for one part of a gang.

namespace gpu_platform::scheduling {

Demand demand_on_shape(const ShapeClass& shape_class, const model::ResourceRequest& request);

// The best GPUs among `free` for the request, not past `widest`: of types that rank equally the one
// with the fewest GPUs left over, then the lowest index. Nothing where there are too few.
std::optional<Subset> choose_gpus(const ShapeClass& shape_class, GpuMask free, std::uint32_t count,
                                  PlacementRank widest, const GpuFilter& filter);

// The widest rank at which a node of this shape may give the request its GPUs: across sockets only
// when the request allows it, or when none of the node's NUMA domains has so many of the GPUs it
// accepts, in use or not; never when it is strict.
PlacementRank widest_rank(const ShapeClass& shape_class, const model::ResourceRequest& request,
                          const GpuFilter& filter);

// Whether a node of this shape could hold the request if nothing else ran on it.
bool could_hold(const ShapeClass& shape_class, const model::ResourceRequest& request,
                const GpuFilter& filter);

}  // namespace gpu_platform::scheduling
