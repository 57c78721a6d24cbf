#include "scheduling/placement/grants.h"

#include <bit>
#include <utility>
#include <vector>

namespace gpu_platform::scheduling {

namespace {

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

model::NodeAllocation part_of_allocation(model::NodeId node, const ShapeClass& shape_class,
                                         const Subset& gpus, const Demand& demand) {
  return {.node = node,
          .grants = grants_on(*shape_class.shape, gpus.gpus),
          .cpus = demand.cpus,
          .memory = demand.memory,
          .level = shape_class.subsets->chooser().level_of(gpus)};
}

}  // namespace gpu_platform::scheduling
