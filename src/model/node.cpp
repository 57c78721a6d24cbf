#include "model/node.h"

#include <algorithm>
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
  NodeInfo info{node.name,   node.emulated,       node.boot_id, node.cpus,
                node.memory, node.driver_version, {},           {node.topology.numa_nodes, {}},
                node.network};
  Indices reported;
  for (std::size_t i = 0; i < node.gpus.size(); ++i) {
    if (!node.gpus[i].is_reported) continue;
    reported.push_back(i);
    info.gpus.push_back(node.gpus[i].info);
  }
  info.topology.links = pick_links(node.topology, node.gpus.size(), reported);
  return info;
}

void describe(Node& node, const NodeInfo& info) {
  node.emulated = info.emulated;
  node.boot_id = info.boot_id;
  node.driver_version = info.driver_version;
  node.cpus = info.cpus;
  node.memory = info.memory;
  node.network = info.network;
  for (Gpu& gpu : node.gpus) gpu.is_reported = false;
  for (const GpuInfo& described : info.gpus) {
    auto known = std::ranges::find(node.gpus, described.uuid,
                                   [](const Gpu& gpu) -> const auto& { return gpu.info.uuid; });
    if (known == node.gpus.end()) known = node.gpus.insert(node.gpus.end(), Gpu{});
    known->info = described;
    known->is_reported = true;
  }
  node.topology.numa_nodes = info.topology.numa_nodes;
  Indices described_at;
  for (const Gpu& gpu : node.gpus) {
    const auto at = std::ranges::find(info.gpus, gpu.info.uuid, &GpuInfo::uuid);
    described_at.push_back(static_cast<std::size_t>(at - info.gpus.begin()));
  }
  node.topology.links = pick_links(info.topology, info.gpus.size(), described_at);
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
