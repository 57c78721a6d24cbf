#include "scheduling/order/cluster_totals.h"

#include <algorithm>

#include "base/check.h"
#include "scheduling/order/growth.h"

namespace gpu_platform::scheduling {

namespace {

__extension__ using Wide = unsigned __int128;

std::uint64_t part_held(Wide held, Wide all) {
  if (held >= all) return all == 0 ? 0 : kOne32;
  return static_cast<std::uint64_t>((held << 32) / all);
}

}  // namespace

void ClusterTotals::add(const NodeShape& node) {
  cpus_ += node.cpus;
  memory_ += node.memory;
  for (const GpuKind& gpu : node.gpus) ++gpus_by_type_[gpu.type];
}

void ClusterTotals::remove(const NodeShape& node) {
  CHECK(cpus_ >= node.cpus && memory_ >= node.memory);
  cpus_ -= node.cpus;
  memory_ -= node.memory;
  for (const GpuKind& gpu : node.gpus) {
    const auto count = gpus_by_type_.find(gpu.type);
    CHECK(count != gpus_by_type_.end());
    if (--count->second == 0) gpus_by_type_.erase(count);
  }
}

std::uint64_t ClusterTotals::gpus() const {
  std::uint64_t sum = 0;
  for (const auto& [type, count] : gpus_by_type_) sum += count;
  return sum;
}

std::uint64_t ClusterTotals::weighted_gpus(const std::vector<model::GpuWeight>& weights) const {
  std::uint64_t sum = 0;
  for (const auto& [type, count] : gpus_by_type_)
    sum += count * model::gpu_weight_of(type, weights);
  return sum;
}

void HeldAmounts::add(const model::NodeAllocation& part, const model::Node& node,
                      const std::vector<model::GpuWeight>& weights) {
  cpus += part.cpus;
  memory += part.memory;
  for (const model::GpuGrant& grant : part.grants) {
    const std::uint32_t weight =
        model::gpu_weight_of(node.gpus.at(grant.gpu_index).info.type, weights);
    gpus += static_cast<std::uint64_t>(grant.share.value()) * weight;
  }
}

std::uint64_t dominant_part(const HeldAmounts& held, const ClusterTotals& totals,
                            const std::vector<model::GpuWeight>& weights) {
  const auto whole_gpu = static_cast<std::uint64_t>(base::kWholeGpu.value());
  return std::max({part_held(held.gpus, Wide{totals.weighted_gpus(weights)} * whole_gpu),
                   part_held(held.cpus, totals.cpus()),
                   part_held(static_cast<std::uint64_t>(held.memory.value()),
                             static_cast<std::uint64_t>(totals.memory().value()))});
}

}  // namespace gpu_platform::scheduling
