#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "model/gpu_part.h"
#include "model/ids.h"

namespace gpu_platform::model {

// The part of one GPU that an attempt holds. Whole GPUs have share kWholeGpu and all of the memory.
struct GpuGrant {
  std::uint32_t gpu_index = 0;  // within the node
  base::GpuShare share;
  base::Bytes memory;
  ShareMode mode = ShareMode::kNone;  // of a part; kNone: the GPU is whole
  Wall wall;

  friend bool operator==(const GpuGrant&, const GpuGrant&) = default;
};

// The closeness of an allocation's GPUs on one node.
enum class PlacementLevel : std::uint8_t {
  kUnknown,  // no GPUs, or the node does not tell
  kOneNumaNode,
  kOneSocket,
  kAcrossSockets,
};
inline constexpr std::size_t kPlacementLevels = 4;

struct NodeAllocation {
  NodeId node;
  std::vector<GpuGrant> grants;  // ascending gpu_index
  std::uint32_t cpus = 0;
  base::Bytes memory;
  PlacementLevel level = PlacementLevel::kUnknown;

  friend bool operator==(const NodeAllocation&, const NodeAllocation&) = default;
};

// Everything an attempt holds, on all its nodes: all of a gang or nothing.
struct Allocation {
  std::vector<NodeAllocation> nodes;  // ascending node id
  // The speed of the job on GPUs of this type, in thousandths; see ResourceRequest::gpu_speeds.
  std::uint32_t speed = 1000;
  // Whose part of a GPU it is; unset for whole GPUs.
  Tenant tenant = {};

  std::uint32_t gpu_count() const {
    std::uint32_t count = 0;
    for (const auto& node : nodes) count += static_cast<std::uint32_t>(node.grants.size());
    return count;
  }
  friend bool operator==(const Allocation&, const Allocation&) = default;
};

// Returns whether it has a part of a GPU: then that is all that it has of GPUs.
inline bool is_part(const Allocation& allocation) {
  return allocation.nodes.size() == 1 && allocation.nodes.front().grants.size() == 1 &&
         allocation.nodes.front().grants.front().share < base::kWholeGpu;
}

// Returns what it has of GPUs, all of them together.
inline base::GpuShare share_of(const Allocation& allocation) {
  base::GpuShare share;
  for (const auto& node : allocation.nodes) {
    for (const auto& grant : node.grants) share += grant.share;
  }
  return share;
}

}  // namespace gpu_platform::model
