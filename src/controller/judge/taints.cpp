#include "controller/judge/taints.h"

#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/utc.h"

#include "model/node_lookup.h"

namespace gpu_platform::controller {

namespace {

const model::Node* find_node(const State& state, std::string_view name) {
  const auto known = state.node_ids.find(name);
  return known == state.node_ids.end() ? nullptr : state.nodes.find(known->second.value);
}

// Returns nothing if the node, or the GPU on it, is not known.
std::optional<model::GpuRef> find_gpu(const State& state, std::string_view node_name,
                                      std::string_view uuid) {
  const model::Node* const node = find_node(state, node_name);
  if (node == nullptr) return std::nullopt;
  const auto index = model::index_of_gpu(*node, uuid);
  return index ? std::optional(model::GpuRef{node->id, *index}) : std::nullopt;
}

// Returns whether the observation changes nothing.
bool is_settled(const model::Taints& taints, const execution::TaintObserved& seen) {
  const model::Taint* const own = model::find_taint(taints, seen.source);
  if (own != nullptr && model::is_an_operators_to_lift(*own)) return true;
  if (own == nullptr || !seen.effect) return (own == nullptr) == !seen.effect;
  return own->effect == *seen.effect && own->text == seen.text;
}

// Who is shown to have set it, where that is no user.
std::string_view by_of(model::TaintSource source) {
  if (source == model::TaintSource::kHealth) return "health";
  return source == model::TaintSource::kCluster ? "cluster" : "node";
}

model::Taint taint_of(const execution::TaintObserved& seen) {
  return {seen.source,
          seen.effect.value_or(model::TaintEffect::kNoNewWork),
          seen.effect ? seen.text : std::string(),
          std::string(by_of(seen.source)),
          {}};
}

// Where jobs are placed by load, a GPU is avoided while it passes a limit, and while nothing is
// known of its load.
bool is_avoided(const model::Policy& policy, const model::UnmanagedProcessesChanged& seen) {
  if (seen.text.empty()) return false;
  if (policy.load_rules.is_on) return !seen.load || !seen.why.empty();
  return policy.unmanaged_processes == model::UnmanagedProcessPolicy::kAvoid;
}

// Returns nothing if the state does not change.
std::optional<model::Event> judge_unmanaged_processes(const State& state, model::GpuRef ref,
                                                      const std::string& text,
                                                      const std::optional<model::GpuLoad>& load) {
  const model::Gpu& gpu = state.nodes.find(ref.node.value)->gpus.at(ref.index);
  const model::Policy& policy = *state.policy;
  model::UnmanagedProcessesChanged seen{ref, text, false};
  const bool is_ignored = policy.unmanaged_processes == model::UnmanagedProcessPolicy::kIgnore;
  if (is_ignored && !policy.load_rules.is_on) seen.text.clear();
  if (policy.load_rules.is_on && !seen.text.empty()) seen.load = load;
  if (seen.load) seen.why = model::why_too_loaded(*seen.load, policy.load_rules);
  seen.avoid = is_avoided(policy, seen);
  const model::Taint* const taint = model::find_taint(gpu.taints, model::TaintSource::kProcesses);
  const bool has_same_taint =
      seen.avoid ? taint != nullptr && taint->text == model::words_of(seen) : taint == nullptr;
  if (gpu.unmanaged_processes == seen.text && gpu.load == seen.load && has_same_taint) {
    return std::nullopt;
  }
  return seen;
}

}  // namespace

std::optional<model::Event> judge_taint(const State& state, const execution::TaintObserved& seen) {
  const bool acts = model::mode_of(*state.policy) == model::HealthMode::kExecute;
  if (!acts && seen.source == model::TaintSource::kHealth) return std::nullopt;
  const model::Node* const node = find_node(state, seen.node_name);
  if (node == nullptr) return std::nullopt;
  std::optional<std::uint32_t> gpu;
  if (!seen.gpu_uuid.empty()) {
    gpu = model::index_of_gpu(*node, seen.gpu_uuid);
    if (!gpu) return std::nullopt;
  }
  if (is_settled(gpu ? node->gpus.at(*gpu).taints : node->taints, seen)) return std::nullopt;
  return model::TaintChanged{node->id, gpu, taint_of(seen), !seen.effect};
}

std::optional<model::Event> next_ended_taint(const State& state, base::Instant now) {
  const auto next = state.taint_ends.next();
  if (!next || next->at > now) return std::nullopt;
  const model::Node& node = *state.nodes.find(next->node.value);
  const model::Taints& taints = next->gpu ? node.gpus.at(*next->gpu).taints : node.taints;
  model::Taint over = *model::find_taint(taints, model::TaintSource::kOperator);
  std::string end;
  base::append_rfc3339(end, over.until, base::Fraction::kNone);
  over.text = fmt::format("its time is over, it was to end at {}: {}", end, over.text);
  over.by.clear();
  over.at = {};
  return model::TaintChanged{next->node, next->gpu, std::move(over), true};
}

std::optional<model::Event> judge_unmanaged_processes(
    const State& state, const execution::UnmanagedProcessesObserved& seen) {
  const auto gpu = find_gpu(state, seen.node_name, seen.gpu_uuid);
  return gpu ? judge_unmanaged_processes(state, *gpu, seen.text, seen.load) : std::nullopt;
}

Events judge_gpus_again(const State& state) {
  Events events;
  state.nodes.for_each([&](std::uint64_t, const model::Node& node) {
    for (std::uint32_t i = 0; i < node.gpus.size(); ++i) {
      const model::Gpu& gpu = node.gpus[i];
      if (gpu.unmanaged_processes.empty()) continue;
      if (auto event =
              judge_unmanaged_processes(state, {node.id, i}, gpu.unmanaged_processes, gpu.load)) {
        events.push_back(*std::move(event));
      }
    }
  });
  return events;
}

}  // namespace gpu_platform::controller
