#pragma once

#include <cstdint>
#include <optional>

#include "model/node.h"
#include "scheduling/gpu_layout.h"
#include "scheduling/part_index.h"

// What of a node's GPUs is free, read from the node: the one place that says so. Placement keeps it
// in indices (cluster.h), and explanations read it from snapshots.

namespace gpu_platform::scheduling {

enum class GpuUse : std::uint8_t {
  kTaken,         // a job has it alone, or it is kept from work
  kFree,          // no job has it, and it takes any work
  kFreeDegraded,  // no job has it, and it takes work of jobs that accept degraded GPUs
  kShared,        // jobs have parts of it; in service or not
};
GpuUse use_of(const model::Gpu& gpu);

// GPUs from kMaxGpusPerNode on are never handed out.
struct FreeGpus {
  GpuMask whole = 0;     // kFree
  GpuMask degraded = 0;  // kFreeDegraded
  GpuMask shared = 0;    // kShared
};
FreeGpus free_gpus_of(const model::Node& node);

// Returns the state of a GPU that is kShared, but for its type and whether the site lets it take
// more parts: `is_open` says that nothing keeps it from work.
PartState part_state_of(const model::Gpu& gpu);

}  // namespace gpu_platform::scheduling
