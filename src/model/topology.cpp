#include "model/topology.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"

namespace gpu_platform::model {

std::string to_string(const GpuLink& link) {
  constexpr std::string_view kNames[kLinkKinds] = {"?", "SYS", "NODE", "PHB", "PXB", "PIX", "NV"};
  const std::string_view name = kNames[static_cast<std::size_t>(link.kind)];
  if (link.kind != LinkKind::kNvLink) return std::string(name);
  return fmt::format("{}{}", name, link.nvlinks);
}

bool is_farther(const GpuLink& a, const GpuLink& b) {
  return std::tuple(a.kind, a.nvlinks) < std::tuple(b.kind, b.nvlinks);
}

std::size_t link_index(std::size_t gpus, std::size_t a, std::size_t b) {
  CHECK(a != b && a < gpus && b < gpus);
  if (a > b) std::swap(a, b);
  // The rows before a have (gpus - 1) + (gpus - 2) + … entries.
  return a * (2 * gpus - a - 1) / 2 + (b - a - 1);
}

GpuLink link_between(const Topology& topology, std::size_t gpus, std::size_t a, std::size_t b) {
  const std::size_t at = link_index(gpus, a, b);
  return at < topology.links.size() ? topology.links[at] : GpuLink{};
}

std::int32_t socket_of(const Topology& topology, std::int32_t numa_node) {
  const auto found = std::ranges::find_if(topology.numa_nodes, [&](const NumaNode& node) {
    return static_cast<std::int32_t>(node.id) == numa_node;
  });
  return found == topology.numa_nodes.end() ? -1 : found->socket;
}

}  // namespace gpu_platform::model
