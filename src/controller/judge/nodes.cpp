#include "controller/judge/nodes.h"

#include <algorithm>
#include <string>
#include <utility>

namespace gpu_platform::controller {

namespace {

// A running job keeps what it was given. A node that reports less within the same boot shrinks to
// what is in use, and to its report when it is next described.
model::NodeInfo widened_to_what_is_held(model::NodeInfo info, const model::Node& node) {
  info.cpus = std::max(info.cpus, node.cpus_used);
  info.memory = std::max(info.memory, node.memory_used);
  for (model::GpuInfo& gpu : info.gpus) {
    const auto known =
        std::ranges::find(node.gpus, gpu.uuid, [](const model::Gpu& g) { return g.info.uuid; });
    if (known == node.gpus.end()) continue;
    base::Bytes in_use;
    for (const model::GpuHolder& holder : known->holders) in_use += holder.memory;
    gpu.memory = std::max(gpu.memory, in_use);
  }
  return info;
}

void judge_missing_gpus(const model::Node& node, const model::NodeInfo& info, Events& events) {
  for (std::uint32_t index = 0; index < node.gpus.size(); ++index) {
    const model::Gpu& gpu = node.gpus[index];
    const bool present = std::ranges::any_of(
        info.gpus, [&](const model::GpuInfo& i) { return i.uuid == gpu.info.uuid; });
    const bool is_out = model::find_taint(gpu.taints, model::TaintSource::kDriver) != nullptr;
    if (present != is_out) continue;
    model::Taint taint{model::TaintSource::kDriver, model::TaintEffect::kOut, {}, "node", {}};
    if (!present) taint.text = "not reported by the driver any more";
    events.push_back(model::TaintChanged{node.id, index, std::move(taint), present});
  }
}

bool is_in_use(const model::Node& node) {
  return node.cpus_used > 0 || node.memory_used > base::Bytes() ||
         std::ranges::any_of(node.gpus, [](const model::Gpu& gpu) { return !gpu.holders.empty(); });
}

// What others use changes often, and alone. The order in which a driver lists its GPUs is no news.
std::optional<model::Event> judge_description(const State& state, const model::Node& node,
                                              const model::NodeInfo& info) {
  model::Node described = node;
  model::describe(described, info, free_places(state, node));
  if (described == node) return std::nullopt;
  described.others_cpus = node.others_cpus;
  described.others_memory = node.others_memory;
  if (described != node) return model::NodeSeen{node.id, info, true};
  return model::NodeOthersChanged{node.id, info.others_cpus, info.others_memory};
}

}  // namespace

model::Event connection_changed(model::NodeId node, std::optional<std::string> why_lost) {
  const bool is_back = !why_lost.has_value();
  return model::TaintChanged{node,
                             {},
                             {model::TaintSource::kConnection,
                              model::TaintEffect::kOut,
                              std::move(why_lost).value_or(""),
                              "node",
                              {}},
                             is_back};
}

Events judge_node(const State& state, const execution::NodeObserved& seen) {
  const auto known = state.node_ids.find(seen.info.name);
  if (known == state.node_ids.end()) {
    return {model::NodeSeen{model::NodeId(state.last_node_id + 1), seen.info, true}};
  }
  const model::Node& node = *state.nodes.find(known->second.value);
  if (node.engine != seen.info.engine && is_in_use(node)) return {};
  const model::NodeInfo info = widened_to_what_is_held(seen.info, node);
  Events events;
  if (auto event = judge_description(state, node, info)) events.push_back(*std::move(event));
  if (!model::is_heard(node)) events.push_back(connection_changed(node.id, std::nullopt));
  judge_missing_gpus(node, info, events);
  return events;
}

Events judge_boot(const State& state, const execution::MachineBooted& seen) {
  Events events;
  state.nodes.for_each([&](std::uint64_t, const model::Node& node) {
    if (!model::traits_of(node.engine).is_on_this_machine) return;
    if (!model::is_heard(node) || node.boot_id == seen.boot_id) return;
    events.push_back(connection_changed(node.id, "not seen since the machine was started anew"));
  });
  return events;
}

std::vector<model::AttemptId> attempts_on(const State& state, model::NodeId node,
                                          std::string_view boot_id) {
  std::vector<model::AttemptId> there;
  for (const model::AttemptId id : state.held_attempts) {
    const model::Attempt& attempt = *find_attempt(state, id);
    const bool is_on =
        std::ranges::any_of(attempt.allocation.nodes,
                            [&](const model::NodeAllocation& part) { return part.node == node; });
    // The boot id of a gang is that of its first node.
    const bool is_of_boot =
        boot_id.empty() || attempt.boot_id == boot_id || attempt.first_node() != node;
    if (is_on && is_of_boot) there.push_back(id);
  }
  return there;
}

}  // namespace gpu_platform::controller
