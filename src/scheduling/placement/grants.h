#pragma once

#include "model/allocation.h"
#include "scheduling/cluster.h"
#include "scheduling/placement/best_subset.h"
#include "scheduling/placement/demand.h"

namespace gpu_platform::scheduling {

// A node's part of an allocation: these of its GPUs, whole, and what goes with them.
model::NodeAllocation part_of_allocation(model::NodeId node, const ShapeClass& shape_class,
                                         const Subset& gpus, const Demand& demand);

}  // namespace gpu_platform::scheduling
