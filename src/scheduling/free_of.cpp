#include "scheduling/free_of.h"

#include <algorithm>

namespace gpu_platform::scheduling {

GpuUse use_of(const model::Gpu& gpu) {
  if (model::is_free(gpu)) return GpuUse::kFree;
  if (gpu.holders.empty()) {
    return model::is_only_degraded(gpu) ? GpuUse::kFreeDegraded : GpuUse::kTaken;
  }
  return gpu.holders.front().share < base::kWholeGpu ? GpuUse::kShared : GpuUse::kTaken;
}

FreeGpus free_gpus_of(const model::Node& node) {
  FreeGpus free;
  const std::size_t count = std::min(node.gpus.size(), kMaxGpusPerNode);
  for (std::size_t i = 0; i < count; ++i) {
    const GpuMask bit = GpuMask{1} << i;
    switch (use_of(node.gpus[i])) {
      case GpuUse::kTaken:
        break;
      case GpuUse::kFree:
        free.whole |= bit;
        break;
      case GpuUse::kFreeDegraded:
        free.degraded |= bit;
        break;
      case GpuUse::kShared:
        free.shared |= bit;
        break;
    }
  }
  return free;
}

PartState part_state_of(const model::Gpu& gpu) {
  PartState state{.mode = gpu.holders.front().mode,
                  .free_share = base::kWholeGpu,
                  .free_memory = gpu.info.memory,
                  .tenants = {},
                  .is_open = model::is_in_service(gpu)};
  for (const model::GpuHolder& holder : gpu.holders) {
    // A driver may say less of a GPU than when the jobs were placed.
    state.free_share -= std::min(state.free_share, holder.share);
    state.free_memory -= std::min(state.free_memory, holder.memory);
    state.tenants.push_back({holder.uid, holder.team});
  }
  std::ranges::sort(state.tenants);
  return state;
}

}  // namespace gpu_platform::scheduling
