#include "controller/judge/health_breaker.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "controller/judge/health_evidence.h"

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

bool is_degrading(std::optional<model::TaintEffect> effect) {
  return effect == model::TaintEffect::kDegraded;
}

// What health keeps the GPU from work with, if it counts.
std::optional<model::TaintEffect> present_effect(const model::Gpu& gpu) {
  const model::Taint* const own = model::find_taint(gpu.taints, model::TaintSource::kHealth);
  if (own == nullptr || !counts(own->effect)) return std::nullopt;
  return own->effect;
}

}  // namespace

health::BreakerLimits limits_of_breaker(const model::Policy& policy) {
  health::BreakerLimits limits;
  limits.percent = policy.health_max_out_percent;
  return limits;
}

std::optional<std::string> refusal_of_breaker(const State& state, model::GpuRef place,
                                              std::optional<model::TaintEffect> effect) {
  const model::Node& own_node = *state.nodes.find(place.node.value);
  const model::Gpu& own = own_node.gpus.at(place.index);
  const std::optional<model::TaintEffect> present = present_effect(own);
  const bool is_harder = !is_degrading(effect);
  if (!counts(effect) || (present && (!is_harder || !is_degrading(present)))) return std::nullopt;
  if (is_harder && is_proven(own)) return std::nullopt;
  health::BreakerCounts sums;
  state.nodes.for_each([&](std::uint64_t, const model::Node& node) {
    const bool is_of_class = node.gpus.size() == own_node.gpus.size();
    for (const model::Gpu& gpu : node.gpus) {
      if (gpu.info.type != own.info.type) continue;
      const std::optional<model::TaintEffect> other = present_effect(gpu);
      const bool is_out = &gpu != &own && other && !is_proven(gpu);
      ++sums.of_type;
      // One that is degraded still runs jobs: it holds nothing back that is worse off.
      if (is_out && !(is_harder && is_degrading(other))) ++sums.out_of_type;
      if (!is_of_class) continue;
      ++sums.of_class;
      if (is_out) ++sums.out_of_class;
    }
  });
  health::BreakerAnswer answer =
      health::ask_breaker(limits_of_breaker(*state.policy), sums, own.info.type);
  if (answer.is_allowed) return std::nullopt;
  return std::move(answer.text);
}

}  // namespace gpu_platform::controller
