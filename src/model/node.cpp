#include "model/node.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace gpu_platform::model {

namespace {

using Indices = std::vector<std::size_t>;

// The links of those GPUs of `from` that `indices` names, in its order; kUnknown for indices beyond
// `gpus`.
std::vector<GpuLink> pick_links(const Topology& from, std::size_t gpus, const Indices& indices) {
  std::vector<GpuLink> links;
  if (from.links.empty()) return links;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    for (std::size_t j = i + 1; j < indices.size(); ++j) {
      const bool known = indices[i] < gpus && indices[j] < gpus;
      links.push_back(known ? link_between(from, gpus, indices[i], indices[j]) : GpuLink{});
    }
  }
  return links;
}

}  // namespace

NodeInfo info_of(const Node& node) {
  NodeInfo info{node.name,
                node.emulated,
                node.boot_id,
                node.cpus,
                node.memory,
                node.driver_version,
                {},
                {node.topology.numa_nodes, {}},
                node.network,
                node.engine,
                node.others_cpus,
                node.others_memory,
                node.capacity,
                node.share_modes,
                node.watches_gpu_memory};
  Indices reported;
  for (std::size_t i = 0; i < node.gpus.size(); ++i) {
    if (!node.gpus[i].is_reported) continue;
    reported.push_back(i);
    info.gpus.push_back(node.gpus[i].info);
  }
  info.topology.links = pick_links(node.topology, node.gpus.size(), reported);
  return info;
}

bool is_forgettable(const Gpu& gpu) {
  return !gpu.is_reported && gpu.holders.empty() &&
         find_taint(gpu.taints, TaintSource::kOperator) == nullptr;
}

void describe(Node& node, const NodeInfo& info, std::uint64_t free_places) {
  const auto place_of_new = [&]() -> Gpu& {
    if (free_places == 0) return node.gpus.emplace_back();
    const auto place = static_cast<std::size_t>(std::countr_zero(free_places));
    free_places &= free_places - 1;
    return node.gpus.at(place) = Gpu{};
  };
  node.emulated = info.emulated;
  node.boot_id = info.boot_id;
  node.driver_version = info.driver_version;
  node.cpus = info.cpus;
  node.memory = info.memory;
  node.network = info.network;
  node.engine = info.engine;
  node.others_cpus = info.others_cpus;
  node.others_memory = info.others_memory;
  node.capacity = info.capacity;
  node.share_modes = info.share_modes;
  node.watches_gpu_memory = info.watches_gpu_memory;
  for (std::size_t i = 0; i < node.gpus.size(); ++i) {
    const auto back = std::ranges::find(info.gpus, node.gpus[i].info.uuid, &GpuInfo::uuid);
    if (back != info.gpus.end() && i < 64) free_places &= ~(std::uint64_t{1} << i);
    node.gpus[i].is_reported = false;
  }
  for (const GpuInfo& described : info.gpus) {
    const auto known = std::ranges::find(
        node.gpus, described.uuid, [](const Gpu& gpu) -> const auto& { return gpu.info.uuid; });
    Gpu& gpu = known != node.gpus.end() ? *known : place_of_new();
    gpu.info = described;
    gpu.is_reported = true;
  }
  node.topology.numa_nodes = info.topology.numa_nodes;
  Indices described_at;
  for (const Gpu& gpu : node.gpus) {
    const auto at = std::ranges::find(info.gpus, gpu.info.uuid, &GpuInfo::uuid);
    described_at.push_back(static_cast<std::size_t>(at - info.gpus.begin()));
  }
  node.topology.links = pick_links(info.topology, info.gpus.size(), described_at);
}

NodeState state_of(const Node& node) {
  const Taint* const worst = worst_of(node.taints);
  if (!decides_state(worst)) return NodeState::kUp;
  if (worst->effect != TaintEffect::kOut) return NodeState::kDraining;
  return worst->source == TaintSource::kConnection ? NodeState::kLost : NodeState::kOffline;
}

void settle(Node& node) {
  node.state = state_of(node);
  node.cause = text_of(node.taints);
}

bool is_heard(const Node& node) {
  return find_taint(node.taints, TaintSource::kConnection) == nullptr;
}

std::optional<TaintEffect> effect_of(NodeService service) {
  if (service == NodeService::kUp) return std::nullopt;
  return service == NodeService::kDraining ? TaintEffect::kNoNewWork : TaintEffect::kOut;
}

namespace {

GpuState state_by_holders(const std::vector<GpuHolder>& holders) {
  const auto has = [&](HolderPhase phase) {
    return std::ranges::find(holders, phase, &GpuHolder::phase) != holders.end();
  };
  if (holders.empty()) return GpuState::kAvailable;
  if (has(HolderPhase::kInUse)) return GpuState::kInUse;
  return has(HolderPhase::kAllocated) ? GpuState::kAllocated : GpuState::kCleaning;
}

}  // namespace

GpuState state_of(const Gpu& gpu) {
  const Taint* const worst = worst_of(gpu.taints);
  if (!decides_state(worst)) return state_by_holders(gpu.holders);
  if (worst->effect == TaintEffect::kDegraded) return GpuState::kDegraded;
  if (worst->effect == TaintEffect::kNoNewWork) return GpuState::kDraining;
  return worst->source == TaintSource::kReset ? GpuState::kResetting : GpuState::kOffline;
}

bool is_only_degraded(const Gpu& gpu) {
  return !gpu.taints.empty() && std::ranges::all_of(gpu.taints, [](const Taint& taint) {
    return taint.effect == TaintEffect::kDegraded;
  });
}

void settle(Gpu& gpu) {
  const Taint* const worst = worst_of(gpu.taints);
  const bool is_out = decides_state(worst);
  gpu.state = state_of(gpu);
  gpu.cause = text_of(gpu.taints);
  gpu.changed_by = is_out ? worst->by : std::string();
  gpu.changed_at = is_out ? worst->at : base::Instant();
}

bool set_phase(Gpu& gpu, AttemptId holder, HolderPhase phase) {
  const auto found = std::ranges::find(gpu.holders, holder, &GpuHolder::attempt);
  if (found == gpu.holders.end()) return false;
  found->phase = phase;
  settle(gpu);
  return true;
}

Taint former_connection_taint() {
  return {TaintSource::kConnection, TaintEffect::kOut, "does not report", "node", {}};
}

void add_former_taints(Node& node) {
  for (Gpu& gpu : node.gpus) add_former_taints(gpu);
  const bool is_out = node.state == NodeState::kOffline;
  if (node.taints.empty() && (is_out || node.state == NodeState::kDraining)) {
    set_taint(node.taints, {TaintSource::kOperator,
                            is_out ? TaintEffect::kOut : TaintEffect::kNoNewWork,
                            node.cause,
                            {},
                            {}});
  }
  if (!std::exchange(node.former_is_heard, true)) {
    Taint lost = former_connection_taint();
    if (node.state == NodeState::kLost) lost.text = node.cause;
    set_taint(node.taints, std::move(lost));
  }
  const NodeService service = std::exchange(node.former_service, NodeService::kUp);
  std::string text = std::exchange(node.former_service_cause, {});
  if (const auto effect = effect_of(service)) {
    set_taint(node.taints, {TaintSource::kCluster, *effect, std::move(text), "cluster", {}});
  }
  settle(node);
}

void add_former_taints(Gpu& gpu) {
  const bool is_out = gpu.state == GpuState::kOffline;
  if (gpu.taints.empty() && (is_out || gpu.state == GpuState::kDraining)) {
    const bool is_by_driver = is_out && !gpu.is_reported && gpu.cause == kFormerDriverText;
    set_taint(gpu.taints, {is_by_driver ? TaintSource::kDriver : TaintSource::kOperator,
                           is_out ? TaintEffect::kOut : TaintEffect::kNoNewWork, gpu.cause,
                           gpu.changed_by, gpu.changed_at});
  }
  if (std::exchange(gpu.former_avoids_processes, false)) {
    set_taint(
        gpu.taints,
        {TaintSource::kProcesses, TaintEffect::kAvoided, gpu.unmanaged_processes, "node", {}});
  }
  if (std::string text = std::exchange(gpu.former_unavailable, {}); !text.empty()) {
    set_taint(gpu.taints,
              {TaintSource::kCluster, TaintEffect::kAvoided, std::move(text), "cluster", {}});
  }
}

Node as_idle(const Node& node) {
  Node idle = node;
  idle.taints.clear();
  settle(idle);
  idle.cpus_used = 0;
  idle.memory_used = {};
  idle.others_cpus = 0;
  idle.others_memory = {};
  for (Gpu& gpu : idle.gpus) {
    gpu.taints.clear();
    gpu.holders.clear();
    settle(gpu);
  }
  return idle;
}

std::vector<NumaNode> numa_nodes_near(const Node& node, const std::vector<std::uint32_t>& gpus) {
  std::vector<NumaNode> near;
  for (const NumaNode& numa : node.topology.numa_nodes) {
    const bool is_near = std::any_of(gpus.begin(), gpus.end(), [&](std::uint32_t gpu) {
      return node.gpus.at(gpu).info.numa_node == static_cast<std::int32_t>(numa.id);
    });
    if (is_near) near.push_back(numa);
  }
  const bool all_known = std::all_of(gpus.begin(), gpus.end(), [&](std::uint32_t gpu) {
    return std::any_of(near.begin(), near.end(), [&](const NumaNode& numa) {
      return node.gpus.at(gpu).info.numa_node == static_cast<std::int32_t>(numa.id);
    });
  });
  if (!all_known || near.size() == node.topology.numa_nodes.size()) near.clear();
  return near;
}

}  // namespace gpu_platform::model
