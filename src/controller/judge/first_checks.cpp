#include "controller/judge/first_checks.h"

#include <cstdint>
#include <utility>
#include <variant>

#include "controller/judge/gpu_resets.h"
#include "model/policy.h"
#include "model/taint.h"

namespace gpu_platform::controller {

void FirstChecks::note(const State& state, const model::Event& event) {
  const auto* const taint = std::get_if<model::TaintChanged>(&event);
  // A GPU that was reset has been checked, too.
  if (taint == nullptr || !taint->is_lifted || taint->taint.source == model::TaintSource::kReset) {
    return;
  }
  const model::Node& node = *state.nodes.find(taint->node.value);
  const model::Taints& taints = taint->gpu ? node.gpus.at(*taint->gpu).taints : node.taints;
  const model::Taint* const own = model::find_taint(taints, taint->taint.source);
  if (own == nullptr || own->effect != model::TaintEffect::kOut) return;
  if (taint->gpu) {
    gpus_.insert({taint->node, *taint->gpu});
  } else {
    nodes_.insert(taint->node);
  }
}

Events FirstChecks::take(const State& state) {
  const bool is_first = !std::exchange(has_begun_, true);
  if (!is_first && nodes_.empty() && gpus_.empty()) return {};
  std::set<model::GpuRef> gpus = std::exchange(gpus_, {});
  const std::set<model::NodeId> nodes = std::exchange(nodes_, {});
  if (state.policy->health_check_at_start == model::HealthCheckAtStart::kNone ||
      model::mode_of(*state.policy) == model::HealthMode::kOff) {
    return {};
  }
  const auto add = [&](const model::Node& node) {
    for (std::uint32_t i = 0; i < node.gpus.size(); ++i) gpus.insert({node.id, i});
  };
  if (is_first) state.nodes.for_each([&](std::uint64_t, const model::Node& node) { add(node); });
  for (const model::NodeId id : nodes) add(*state.nodes.find(id.value));
  return order_first_checks(state, gpus);
}

}  // namespace gpu_platform::controller
