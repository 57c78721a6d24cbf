#include "bin/found_nodes.h"

namespace gpu_platform::bin {

scheduling::GpusByType gpus_by_type(const controller::Snapshot& snapshot) {
  scheduling::GpusByType found;
  snapshot.nodes.for_each([&](std::uint64_t, const model::Node& node) {
    for (const model::Gpu& gpu : node.gpus) ++found[gpu.info.type];
  });
  return found;
}

NodeCount nodes_of(model::EngineKind engine, const controller::Snapshot& snapshot) {
  NodeCount count;
  snapshot.nodes.for_each([&](std::uint64_t, const model::Node& node) {
    if (node.engine != engine) return;
    ++count.nodes;
    count.gpus += node.gpus.size();
  });
  return count;
}

}  // namespace gpu_platform::bin
