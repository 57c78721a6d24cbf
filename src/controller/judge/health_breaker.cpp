#include "controller/judge/health_breaker.h"

#include <cstdint>
#include <utility>

namespace gpu_platform::controller {

namespace {

health::Outage outage_of(std::optional<model::TaintEffect> effect) {
  if (!effect || *effect == model::TaintEffect::kAvoided) return health::Outage::kNone;
  return *effect == model::TaintEffect::kDegraded ? health::Outage::kDegraded
                                                  : health::Outage::kOut;
}

health::Outage present_outage(const model::Gpu& gpu) {
  const model::Taint* const own = model::find_taint(gpu.taints, model::TaintSource::kHealth);
  return own == nullptr ? health::Outage::kNone : outage_of(own->effect);
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
  const health::Outage wanted = outage_of(effect);
  const health::BreakerGpu asking{present_outage(own), health::is_proven(*own.evidence)};
  if (!health::needs_breaker(asking, wanted)) return std::nullopt;
  health::BreakerCounts sums;
  state.nodes.for_each([&](std::uint64_t, const model::Node& node) {
    for (const model::Gpu& gpu : node.gpus) {
      if (gpu.info.type != own.info.type) continue;
      health::BreakerGpu seen;
      if (&gpu != &own) seen.outage = present_outage(gpu);
      seen.is_proven = seen.outage != health::Outage::kNone && health::is_proven(*gpu.evidence);
      seen.is_of_class = node.gpus.size() == own_node.gpus.size();
      health::count(seen, wanted, sums);
    }
  });
  health::BreakerAnswer answer =
      health::ask_breaker(limits_of_breaker(*state.policy), sums, own.info.type);
  if (answer.is_allowed) return std::nullopt;
  return std::move(answer.text);
}

}  // namespace gpu_platform::controller
