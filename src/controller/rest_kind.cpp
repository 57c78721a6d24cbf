#include "controller/rest_kind.h"

#include <algorithm>

namespace gpu_platform::controller {

namespace {

bool is_on_preemption_hold(const State& state, model::NodeId node, std::uint32_t gpu) {
  return std::ranges::any_of(state.books->holds.all(), [&](const auto& entry) {
    const std::vector<model::NodeAllocation>& parts = entry.second.allocation.nodes;
    const auto part = std::ranges::lower_bound(parts, node, {}, &model::NodeAllocation::node);
    return part != parts.end() && part->node == node &&
           std::ranges::binary_search(part->grants, gpu, {}, &model::GpuGrant::gpu_index);
  });
}

}  // namespace

base::GpuShare rest_of(const model::Gpu& gpu) {
  base::GpuShare rest = base::kWholeGpu;
  for (const model::GpuHolder& holder : gpu.holders) rest -= holder.share;
  return rest;
}

model::RestKind rest_kind_of(const State& state, const model::Node& node, std::uint32_t index) {
  using model::GpuState;
  using model::NodeState;
  using model::RestKind;
  const model::Gpu& gpu = node.gpus.at(index);
  if (rest_of(gpu) == base::GpuShare()) return RestKind::kIdle;
  const bool is_node_out = node.state == NodeState::kOffline || node.state == NodeState::kLost;
  if (is_node_out || gpu.state == GpuState::kOffline) return RestKind::kOffline;
  if (gpu.state == GpuState::kResetting) return RestKind::kResetting;
  if (node.state == NodeState::kDraining || gpu.state == GpuState::kDraining) {
    return RestKind::kDraining;
  }
  if (gpu.state == GpuState::kDegraded) return RestKind::kDegraded;
  if (model::is_kept_from_work(gpu)) return RestKind::kOthers;
  return is_on_preemption_hold(state, node.id, index) ? RestKind::kHeld : RestKind::kIdle;
}

}  // namespace gpu_platform::controller
