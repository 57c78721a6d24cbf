#pragma once

#include <array>
#include <optional>
#include <vector>

#include "base/units.h"
#include "model/gpu_part.h"
#include "model/node.h"
#include "model/policy.h"
#include "model/resource_request.h"
#include "scheduling/gpu_layout.h"

// Which GPUs several jobs may share, in which ways, and behind which walls. These values have no
// owner and no thread.

namespace gpu_platform::scheduling {

// The wall of each mode; none where the mode is not to be had.
using ModeWalls = std::array<std::optional<model::Wall>, model::kShareModes>;

// Returns what keeps the tenant's part of a GPU of the node to its amounts if it is shared in that
// mode; nothing where the node has no mechanism for it. Only nodes whose jobs are processes of ours
// have any. A job of root can undo most of them.
std::optional<model::Wall> wall_of(const model::Node& node, model::ShareMode mode,
                                   const model::Tenant& tenant);

// Returns the GPUs of the node on which an MPS server limits each of its clients: those of compute
// capability 7.0 (Volta) and later. A GPU whose capability is not known counts.
GpuMask gpus_with_mps_limits(const model::Node& node);

// What a node offers to parts by the site's rules and its own mechanisms, in use or not.
struct PartTerms {
  GpuMask gpus = 0;         // that may be shared
  GpuMask mps_gpus = 0;     // those of them that may be shared by MPS, too
  ModeWalls walls;          // of the jobs of users
  ModeWalls walls_of_root;  // of its jobs

  // Returns the wall of the tenant's part; null where it does not get one in that mode.
  const model::Wall* wall(model::ShareMode mode, const model::Tenant& tenant) const {
    const ModeWalls& given = model::is_root(tenant) ? walls_of_root : walls;
    const auto& found = given[static_cast<std::size_t>(mode)];
    return found ? &*found : nullptr;
  }

  GpuMask gpus_in(model::ShareMode mode) const {
    return mode == model::ShareMode::kMps ? mps_gpus : gpus;
  }

  friend bool operator==(const PartTerms&, const PartTerms&) = default;
};
PartTerms part_terms_of(const model::Sharing& rules, const model::Node& node);

// Returns the modes that the request may have by the site's rules, the preferred one first.
std::vector<model::ShareMode> modes_for(const model::Sharing& rules,
                                        const model::ResourceRequest& request);
// Returns whether the wall suffices for the request.
inline bool is_strong_enough(const model::Wall& wall, const model::ResourceRequest& request) {
  return model::is_enough(wall, request.require_isolation);
}

// Returns the memory that a part gets on such a GPU: what the job asks for, or its share.
base::Bytes memory_of_part(const model::ResourceRequest& request, base::Bytes of_gpu);

}  // namespace gpu_platform::scheduling
