#include "controller/judge/health_breaker.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "controller/judge/health_evidence.h"
#include "health/breaker.h"

namespace gpu_platform::controller {

namespace {

bool counts(std::optional<model::TaintEffect> effect) {
  return effect && *effect != model::TaintEffect::kAvoided;
}

// No job could run on it, or its reset or check has failed: that is a fact, and no judgement that
// may be wrong.
bool is_proven(const model::Gpu& gpu) {
  if (is_silent(gpu)) return true;
  const auto is_trial = [](const model::Evidence& piece) {
    if (piece.kind == model::EvidenceKind::kCleared) return true;
    const bool is_of_kind =
        piece.kind == model::EvidenceKind::kReset || piece.kind == model::EvidenceKind::kCheck;
    return is_of_kind && !model::is_refused_trial(piece);
  };
  const auto latest = std::find_if(gpu.evidence->rbegin(), gpu.evidence->rend(), is_trial);
  return latest != gpu.evidence->rend() && model::is_failed_trial(*latest);
}

bool is_out_by_health(const model::Gpu& gpu) {
  const model::Taint* const own = model::find_taint(gpu.taints, model::TaintSource::kHealth);
  return own != nullptr && counts(own->effect);
}

}  // namespace

std::optional<std::string> refusal_of_breaker(const State& state, model::GpuRef place,
                                              std::optional<model::TaintEffect> effect) {
  const model::Node& own_node = *state.nodes.find(place.node.value);
  const model::Gpu& own = own_node.gpus.at(place.index);
  if (!counts(effect) || is_out_by_health(own)) return std::nullopt;
  if (*effect != model::TaintEffect::kDegraded && is_proven(own)) return std::nullopt;
  health::BreakerCounts sums;
  state.nodes.for_each([&](std::uint64_t, const model::Node& node) {
    const bool is_of_class = node.gpus.size() == own_node.gpus.size();
    for (const model::Gpu& gpu : node.gpus) {
      if (gpu.info.type != own.info.type) continue;
      const std::size_t is_out = is_out_by_health(gpu) && !is_proven(gpu) ? 1 : 0;
      ++sums.of_type;
      sums.out_of_type += is_out;
      if (!is_of_class) continue;
      ++sums.of_class;
      sums.out_of_class += is_out;
    }
  });
  health::BreakerAnswer answer = health::ask_breaker(
      {.percent = state.policy->health_max_out_percent, .at_least = 1, .at_most = 0}, sums,
      own.info.type);
  if (answer.is_allowed) return std::nullopt;
  return std::move(answer.text);
}

}  // namespace gpu_platform::controller
