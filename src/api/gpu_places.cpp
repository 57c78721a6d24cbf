#include "api/gpu_places.h"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "model/node_lookup.h"

namespace gpu_platform::api {

base::Result<const model::Node*> find_node(const controller::Snapshot& snapshot,
                                           const std::string& name, std::string field) {
  const model::Node* node = model::node_named(snapshot.nodes, *snapshot.nodes_by_name, name);
  if (node != nullptr) return node;
  return base::fail(base::ErrorCode::kNotFound,
                    fmt::format("there is no node '{}'; 'gpu-platform nodes' lists them", name),
                    std::move(field));
}

base::Result<FoundGpu> find_gpu(const controller::Snapshot& snapshot,
                                const model::GpuSelector& which) {
  if (which.uuid.empty()) {
    TRY_ASSIGN(const model::Node* node, find_node(snapshot, which.node, "gpu"));
    if (*which.index < node->gpus.size()) return FoundGpu{node, *which.index};
    return base::fail(base::ErrorCode::kNotFound,
                      fmt::format("node {} has no GPU {}: it has {}, numbered from 0", which.node,
                                  *which.index, node->gpus.size()),
                      "gpu");
  }
  const std::vector<model::GpuRef> places = model::places_of_gpu(snapshot.nodes, which.uuid);
  if (!places.empty()) {
    return FoundGpu{snapshot.nodes.find(places.back().node.value), places.back().index};
  }
  return base::fail(
      base::ErrorCode::kNotFound,
      fmt::format("there is no GPU '{}'; 'gpu-platform status --all' lists them", which.uuid),
      "gpu_id");
}

}  // namespace gpu_platform::api
