#include "model/node_lookup.h"

#include <algorithm>

namespace gpu_platform::model {

NodesByName nodes_by_name(const base::PersistentMap<Node>& nodes) {
  NodesByName ids;
  ids.reserve(nodes.size());
  nodes.for_each([&](std::uint64_t, const Node& node) { ids.push_back(node.id); });
  std::ranges::sort(ids, {},
                    [&](NodeId id) -> std::string_view { return nodes.find(id.value)->name; });
  return ids;
}

const Node* node_named(const base::PersistentMap<Node>& nodes, const NodesByName& by_name,
                       std::string_view name) {
  const auto found = std::ranges::lower_bound(
      by_name, name, {}, [&](NodeId id) -> std::string_view { return nodes.find(id.value)->name; });
  if (found == by_name.end()) return nullptr;
  const Node* const node = nodes.find(found->value);
  return node->name == name ? node : nullptr;
}

std::optional<std::uint32_t> index_of_gpu(const Node& node, std::string_view uuid) {
  const auto found =
      std::ranges::find_if(node.gpus, [&](const Gpu& gpu) { return gpu.info.uuid == uuid; });
  if (found == node.gpus.end()) return std::nullopt;
  return static_cast<std::uint32_t>(found - node.gpus.begin());
}

std::vector<GpuRef> places_of_gpu(const base::PersistentMap<Node>& nodes, std::string_view uuid) {
  std::vector<GpuRef> places;
  nodes.for_each([&](std::uint64_t, const Node& node) {
    for (std::uint32_t i = 0; i < node.gpus.size(); ++i) {
      if (node.gpus[i].info.uuid == uuid) places.push_back({node.id, i});
    }
  });
  return places;
}

std::optional<EngineKind> engine_of(const base::PersistentMap<Node>& nodes, const Job& job,
                                    std::uint32_t attempt) {
  if (attempt == 0 || attempt > job.attempts.size()) return std::nullopt;
  const std::vector<NodeAllocation>& parts = job.attempts[attempt - 1].allocation.nodes;
  const Node* node = parts.empty() ? nullptr : nodes.find(parts.front().node.value);
  return node == nullptr ? std::nullopt : std::optional(node->engine);
}

}  // namespace gpu_platform::model
