#include "scheduling/node_shape.h"

#include <algorithm>

#include "scheduling/free_of.h"

namespace gpu_platform::scheduling {

namespace {

// A link that the topology does not list counts as unknown.
Nearness nearness_at(const model::Topology& topology, std::size_t pair) {
  return pair < topology.links.size() ? nearness_of(topology.links[pair]) : Nearness{0};
}

std::size_t pairs_of(std::size_t gpus) {
  return gpus == 0 ? 0 : gpus * (gpus - 1) / 2;
}

// Moves an amount out of what is free; what is not free is missing.
template <class Amount>
void take(Amount amount, Amount& free, Amount& missing) {
  const Amount there = std::min(amount, free);
  free -= there;
  missing += amount - there;
}

}  // namespace

bool may_use(const model::ResourceRequest& request, const NodeShape& shape) {
  return request.engines.contains(shape.engine) && model::accepts(request.capacity, shape.capacity);
}

NodeShape shape_of(const model::Node& node) {
  NodeShape shape{.cpus = node.cpus,
                  .memory = node.memory,
                  .gpus = {},
                  .nearness = {},
                  .engine = node.engine,
                  .capacity = node.capacity};
  shape.gpus.reserve(node.gpus.size());
  for (const model::Gpu& gpu : node.gpus) {
    shape.gpus.push_back({gpu.info.type, gpu.info.memory, gpu.info.numa_node,
                          model::socket_of(node.topology, gpu.info.numa_node)});
  }
  const std::size_t pairs = pairs_of(node.gpus.size());
  shape.nearness.reserve(pairs);
  for (std::size_t i = 0; i < pairs; ++i) {
    shape.nearness.push_back(nearness_at(node.topology, i));
  }
  return shape;
}

bool has_shape(const model::Node& node, const NodeShape& shape) {
  const bool has_parts =
      node.engine == shape.engine && node.capacity == shape.capacity && node.cpus == shape.cpus &&
      node.memory == shape.memory &&
      std::ranges::equal(node.gpus, shape.gpus, [&](const model::Gpu& gpu, const GpuKind& kind) {
        return gpu.info.memory == kind.memory && gpu.info.numa_node == kind.numa_node &&
               model::socket_of(node.topology, kind.numa_node) == kind.socket &&
               gpu.info.type == kind.type;
      });
  if (!has_parts) return false;
  for (std::size_t i = 0; i < shape.nearness.size(); ++i) {
    if (nearness_at(node.topology, i) != shape.nearness[i]) return false;
  }
  return true;
}

GpuLayout layout_of(const NodeShape& shape) {
  const std::size_t all = shape.gpus.size();
  const std::size_t gpus = std::min(all, kMaxGpusPerNode);
  DomainCollector collector;
  GpuLayout layout{.gpus = static_cast<std::uint32_t>(gpus),
                   .domains = {},
                   .nearness = std::vector<Nearness>(gpus * gpus)};
  for (std::size_t a = 0; a < gpus; ++a) {
    collector.add(a, shape.gpus[a].numa_node, shape.gpus[a].socket);
    for (std::size_t b = 0; b < gpus; ++b) {
      if (a == b) continue;
      layout.nearness[a * gpus + b] = shape.nearness[model::link_index(all, a, b)];
    }
  }
  layout.domains = collector.domains();
  return layout;
}

FreeState free_state_of(const model::Node& node) {
  FreeState free{.is_up = node.state == model::NodeState::kUp,
                 .gpus = 0,
                 .cpus = node.cpus,
                 .memory = node.memory};
  take(node.cpus_used, free.cpus, free.missing_cpus);
  take(node.others_cpus, free.cpus, free.missing_cpus);
  take(node.memory_used, free.memory, free.missing_memory);
  take(node.others_memory, free.memory, free.missing_memory);
  const FreeGpus gpus = free_gpus_of(node);
  free.gpus = gpus.whole;
  free.degraded = gpus.degraded;
  return free;
}

void give_back(FreeState& free, const model::NodeAllocation& part) {
  const std::uint32_t cpus = std::min(part.cpus, free.missing_cpus);
  const base::Bytes memory = std::min(part.memory, free.missing_memory);
  free.missing_cpus -= cpus;
  free.missing_memory -= memory;
  free.cpus += part.cpus - cpus;
  free.memory += part.memory - memory;
}

GpuMask gpus_in_service(const model::Node& node) {
  GpuMask gpus = 0;
  const std::size_t count = std::min(node.gpus.size(), kMaxGpusPerNode);
  for (std::size_t i = 0; i < count; ++i) {
    if (model::is_in_service(node.gpus[i])) gpus |= GpuMask{1} << i;
  }
  return gpus;
}

GpuMask gpus_degraded(const model::Node& node) {
  GpuMask gpus = 0;
  const std::size_t count = std::min(node.gpus.size(), kMaxGpusPerNode);
  for (std::size_t i = 0; i < count; ++i) {
    const model::Gpu& gpu = node.gpus[i];
    if (model::is_kept_from_work(gpu) && model::is_only_degraded(gpu)) gpus |= GpuMask{1} << i;
  }
  return gpus;
}

}  // namespace gpu_platform::scheduling
