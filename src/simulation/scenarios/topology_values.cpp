#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "simulation/scenarios/values.h"

// NUMA nodes, sockets and links of a scenario's nodes.

namespace gpu_platform::simulation {

namespace {

base::Result<model::GpuLink> link_of(std::string_view text) {
  constexpr std::pair<std::string_view, model::LinkKind> kKinds[] = {
      {"sys", model::LinkKind::kSystem},
      {"node", model::LinkKind::kNode},
      {"phb", model::LinkKind::kHostBridge},
      {"pxb", model::LinkKind::kPxb},
      {"pix", model::LinkKind::kPix}};
  for (const auto& [name, kind] : kKinds) {
    if (text == name) return model::GpuLink{.kind = kind};
  }
  if (text.starts_with("nv")) {
    TRY_ASSIGN(const std::uint64_t count, base::parse_count(text.substr(2), 1, 64));
    return model::GpuLink{.kind = model::LinkKind::kNvLink,
                          .nvlinks = static_cast<std::uint32_t>(count)};
  }
  return base::invalid({}, fmt::format("'{}' is not sys, node, phb, pxb, pix or nvN", text));
}

// Links by where two GPUs lie: on one NUMA node, on one socket, elsewhere.
using LinksByPlace = std::array<model::GpuLink, 3>;

// "nv18" between all, or "pix/node/sys" by place.
base::Result<LinksByPlace> links_of(std::string_view text) {
  LinksByPlace links;
  for (std::size_t i = 0; i < links.size(); ++i) {
    const std::size_t slash = text.find('/');
    TRY_ASSIGN(links[i], link_of(text.substr(0, slash)));
    if (slash == std::string_view::npos) {
      if (i == 0) links.fill(links[0]);
      if (i == 0 || i == 2) return links;
      break;
    }
    text.remove_prefix(slash + 1);
  }
  return base::invalid({}, "links: one word, or three for one NUMA node, one socket and elsewhere");
}

void set_links(const LinksByPlace& links, model::NodeInfo& node) {
  const std::size_t gpus = node.gpus.size();
  for (std::size_t a = 0; a < gpus; ++a) {
    for (std::size_t b = a + 1; b < gpus; ++b) {
      const std::int32_t numa_a = node.gpus[a].numa_node;
      const std::int32_t numa_b = node.gpus[b].numa_node;
      const bool is_one_socket =
          model::socket_of(node.topology, numa_a) == model::socket_of(node.topology, numa_b);
      node.topology.links.push_back(links[numa_a == numa_b ? 0 : (is_one_socket ? 1 : 2)]);
    }
  }
}

// "0-3:nv2": another link between two GPUs.
base::Status set_pair(std::string_view text, model::NodeInfo& node) {
  const std::size_t dash = text.find('-');
  const std::size_t colon = text.find(':');
  if (dash == std::string_view::npos || colon == std::string_view::npos || dash > colon) {
    return base::invalid({}, fmt::format("pairs: '{}' is not of the form 0-3:nv2", text));
  }
  const std::size_t gpus = node.gpus.size();
  const std::size_t last = gpus == 0 ? 0 : gpus - 1;
  TRY_ASSIGN(const std::uint64_t a, base::parse_count(text.substr(0, dash), 0, last));
  TRY_ASSIGN(const std::uint64_t b,
             base::parse_count(text.substr(dash + 1, colon - dash - 1), 0, last));
  if (a == b) return base::invalid({}, fmt::format("pairs: '{}' is not a pair", text));
  TRY_ASSIGN(node.topology.links.at(model::link_index(gpus, a, b)),
             link_of(text.substr(colon + 1)));
  return {};
}

}  // namespace

base::Status set_topology(const Statement& statement, model::NodeInfo& node) {
  std::uint32_t numa_gpus = 4;
  std::uint32_t socket_gpus = 0;
  TRY(set_count(statement, "numa_gpus", 1, 64, numa_gpus));
  TRY(set_count(statement, "socket_gpus", 1, 64, socket_gpus));
  if (socket_gpus % numa_gpus != 0) {
    return base::invalid({}, "socket_gpus: not a multiple of numa_gpus");
  }
  for (model::GpuInfo& gpu : node.gpus) {
    gpu.numa_node = static_cast<std::int32_t>(gpu.minor / numa_gpus);
  }
  const std::size_t numa_nodes = (node.gpus.size() + numa_gpus - 1) / numa_gpus;
  for (std::uint32_t id = 0; socket_gpus != 0 && id < numa_nodes; ++id) {
    node.topology.numa_nodes.push_back(
        {.id = id, .socket = static_cast<std::int32_t>(id / (socket_gpus / numa_gpus))});
  }
  const std::string* links = option(statement, "links");
  const std::string* pairs = option(statement, "pairs");
  if (links != nullptr) {
    TRY_ASSIGN(const LinksByPlace by_place, links_of(*links));
    set_links(by_place, node);
  }
  if (pairs == nullptr) return {};
  if (links == nullptr) return base::invalid({}, "pairs: links= must say what all others have");
  for (const std::string& pair : parts_of(*pairs)) TRY(set_pair(pair, node));
  return {};
}

}  // namespace gpu_platform::simulation
