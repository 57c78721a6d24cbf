#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "base/units.h"
#include "model/job.h"
#include "scheduling/cluster.h"

namespace gpu_platform::scheduling {

// Which GPUs a request accepts by type and memory, compared by number instead of name. Refers into
// `types`: to be used for one decision, while no node is added.
class GpuFilter {
 public:
  // Of the request's types all, or only the one at index `choice`.
  GpuFilter(const model::ResourceRequest& request, const GpuTypes& types,
            std::optional<std::size_t> choice = std::nullopt)
      : least_memory_(request.gpu_memory) {
    for (std::size_t i = 0; i < request.gpu_types.size(); ++i) {
      if (!choice || *choice == i) accepted_.push_back(&types.accepted_by(request.gpu_types[i]));
    }
  }
  // The same, but this type alone.
  GpuFilter only(TypeIndex type) const {
    GpuFilter copy = *this;
    copy.only_ = type;
    return copy;
  }

  bool accepts(TypeIndex type) const {
    if (only_ && *only_ != type) return false;
    return accepted_.empty() ||
           std::ranges::any_of(accepted_, [&](const auto* types) { return (*types)[type]; });
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
  base::Bytes least_memory_;
  std::optional<TypeIndex> only_;
  std::vector<const std::vector<bool>*> accepted_;  // a row per name asked for; empty: any type
};

}  // namespace gpu_platform::scheduling
