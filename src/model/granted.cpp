#include "model/granted.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "model/node.h"

namespace gpu_platform::model {

namespace {

// The slowest link from a GPU to the others of the part; kUnknown where one of them is not known.
GpuLink slowest_link(const Node& node, const NodeAllocation& part, std::uint32_t gpu) {
  std::optional<GpuLink> slowest;
  for (const GpuGrant& other : part.grants) {
    if (other.gpu_index == gpu) continue;
    if (std::max(other.gpu_index, gpu) >= node.gpus.size()) return {};
    const GpuLink link = link_between(node.topology, node.gpus.size(), gpu, other.gpu_index);
    if (!slowest || is_farther(link, *slowest)) slowest = link;
  }
  return slowest.value_or(GpuLink{});
}

// A NUMA node without a known socket counts as a socket of its own, as in placement.
std::uint32_t sockets_of(const Node& node, const NodeAllocation& part) {
  std::set<std::pair<std::int32_t, std::int32_t>> sockets;
  for (const GpuGrant& grant : part.grants) {
    if (grant.gpu_index >= node.gpus.size()) return 0;
    const std::int32_t numa_node = node.gpus[grant.gpu_index].info.numa_node;
    const std::int32_t socket = socket_of(node.topology, numa_node);
    sockets.emplace(socket, socket >= 0 ? -1 : numa_node);
  }
  return static_cast<std::uint32_t>(sockets.size());
}

}  // namespace

bool is_of(const Granted& granted, const Allocation& allocation) {
  return std::ranges::equal(
      granted, allocation.nodes, {}, [](const GrantedNode& node) { return node.gpus.size(); },
      [](const NodeAllocation& part) { return part.grants.size(); });
}

GrantedNode granted_on(const Node& node, const NodeAllocation& part) {
  GrantedNode granted{node.name, sockets_of(node, part), {}};
  granted.gpus.reserve(part.grants.size());
  for (const GpuGrant& grant : part.grants) {
    GrantedGpu& gpu = granted.gpus.emplace_back();
    if (grant.gpu_index >= node.gpus.size()) continue;
    const GpuInfo& info = node.gpus[grant.gpu_index].info;
    gpu = {info.uuid, info.model, slowest_link(node, part, grant.gpu_index)};
  }
  return granted;
}

}  // namespace gpu_platform::model
