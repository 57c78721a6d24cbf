#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/units.h"
#include "model/job.h"
#include "scheduling/cluster.h"

namespace gpu_platform::scheduling {

// Which GPUs a request accepts by type and memory, compared by number instead of name. Refers into
// `types`: to be used for one decision, while no node is added.
class GpuFilter {
 public:
  GpuFilter(const model::ResourceRequest& request, const GpuTypes& types)
      : least_memory_(request.gpu_memory) {
    accepted_.reserve(request.gpu_types.size());
    for (const std::string& wanted : request.gpu_types) {
      accepted_.push_back(&types.accepted_by(wanted));
    }
  }

  // Calls visit(GpuMask) for each acceptable type that the shape has, with its GPUs that have the
  // memory (perhaps none). The order of types means nothing.
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
  bool accepts(TypeIndex type) const {
    return accepted_.empty() ||
           std::ranges::any_of(accepted_, [&](const auto* types) { return (*types)[type]; });
  }

  base::Bytes least_memory_;
  std::vector<const std::vector<bool>*> accepted_;  // a row per name asked for; empty: any type
};

}  // namespace gpu_platform::scheduling
