#include "controller/judge/preflight.h"

#include <cstdint>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "model/node_lookup.h"
#include "model/policy.h"

namespace gpu_platform::controller {

namespace {

struct UnfitPlace {
  const model::Node& node;
  std::uint32_t index;
};

std::optional<UnfitPlace> place_of_unfit(const State& state, const execution::UnfitGpu& unfit) {
  const auto known = state.node_ids.find(unfit.node_name);
  if (known == state.node_ids.end()) return std::nullopt;
  const model::Node& node = *state.nodes.find(known->second.value);
  const auto index = model::index_of_gpu(node, unfit.gpu_uuid);
  if (!index) return std::nullopt;
  return UnfitPlace{node, *index};
}

}  // namespace

std::vector<model::EvidenceRecorded> failed_preflights(const State& state,
                                                       const execution::Ended& seen,
                                                       base::Instant now) {
  std::vector<model::EvidenceRecorded> pieces;
  const model::Attempt* const attempt = find_attempt(state, seen.attempt);
  if (attempt == nullptr || !model::may_have_processes(attempt->state)) return pieces;
  if (model::mode_of(*state.policy) == model::HealthMode::kOff) return pieces;
  for (const execution::UnfitGpu& unfit : seen.unfit_gpus) {
    const auto place = place_of_unfit(state, unfit);
    if (!place) continue;
    // It names no job, because nothing of the job was on the GPU.
    model::Evidence piece;
    piece.kind = model::EvidenceKind::kCheck;
    piece.source = model::EvidenceSource::kPlatform;
    piece.at = now;
    piece.last = now;
    piece.code = static_cast<std::uint32_t>(model::TrialCode::kFailed);
    piece.text = unfit.failure;
    pieces.push_back({place->node.id, place->index, std::move(piece)});
  }
  return pieces;
}

HardwareBlame blame_unfit(const State& state, const std::vector<execution::UnfitGpu>& gpus) {
  HardwareBlame blame;
  for (const execution::UnfitGpu& unfit : gpus) {
    blame.suspects.push_back(unfit.gpu_uuid);
    if (!blame.text.empty()) continue;
    const auto place = place_of_unfit(state, unfit);
    const std::string name = place
                                 ? fmt::format("GPU {} of node {}", place->index, place->node.name)
                                 : "GPU " + unfit.gpu_uuid;
    blame.text = fmt::format("{} failed its check before the start: {}", name, unfit.failure);
  }
  return blame;
}

}  // namespace gpu_platform::controller
