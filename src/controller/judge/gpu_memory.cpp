#include "controller/judge/gpu_memory.h"

#include <algorithm>

#include "model/node_lookup.h"

namespace gpu_platform::controller {

namespace {

bool has_part_of(const State& state, const execution::GpuMemoryExceeded& seen) {
  const auto known = state.node_ids.find(seen.node_name);
  if (known == state.node_ids.end()) return false;
  const model::Node& node = *state.nodes.find(known->second.value);
  const auto index = model::index_of_gpu(node, seen.gpu_uuid);
  if (!index) return false;
  const auto& holders = node.gpus.at(*index).holders;
  const auto holder = std::ranges::find(holders, seen.attempt, &model::GpuHolder::attempt);
  return holder != holders.end() && holder->share < base::kWholeGpu;
}

}  // namespace

std::optional<model::Event> judge_gpu_memory(const State& state,
                                             const execution::GpuMemoryExceeded& seen) {
  const model::Attempt* const attempt = find_attempt(state, seen.attempt);
  if (attempt == nullptr || attempt->state != model::AttemptState::kRunning) return std::nullopt;
  if (!has_part_of(state, seen)) return std::nullopt;
  return model::StopRequested{seen.attempt, model::EndReason::kGpuMemory, false, {}};
}

}  // namespace gpu_platform::controller
