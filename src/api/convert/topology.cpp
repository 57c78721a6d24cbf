#include "api/convert/topology.h"

#include "api/convert/cluster.h"

namespace gpu_platform::api {

namespace {

void put_numa_node(const model::NumaNode& numa, v1::NumaNode& out) {
  out.set_id(numa.id);
  if (numa.socket >= 0) out.set_socket(static_cast<std::uint32_t>(numa.socket));
  out.set_cpus(numa.cpus);
  if (numa.memory.value() != 0) {
    out.set_memory_bytes(static_cast<std::uint64_t>(numa.memory.value()));
  }
}

void put_gpu(const model::GpuInfo& gpu, std::uint32_t index, v1::TopologyGpu& out) {
  out.set_index(index);
  out.set_uuid(gpu.uuid);
  out.set_type(gpu.type);
  out.set_pci_address(gpu.pci_address);
  if (gpu.numa_node >= 0) out.set_numa_node(static_cast<std::uint32_t>(gpu.numa_node));
}

void put_link(const model::GpuLink& link, std::uint32_t a, std::uint32_t b, v1::GpuLink& out) {
  out.set_a(a);
  out.set_b(b);
  out.set_link(model::to_string(link));
  const bool has_version = link.kind == model::LinkKind::kNvLink && link.nvlink_version != 0;
  if (has_version) out.set_nvlink_version(link.nvlink_version);
}

}  // namespace

void to_proto(const model::Node& node, v1::NodeTopology& out) {
  out.set_node(node.name);
  out.set_emulated(node.emulated);
  for (const model::NumaNode& numa : node.topology.numa_nodes) {
    put_numa_node(numa, *out.add_numa_nodes());
  }
  const auto count = static_cast<std::uint32_t>(node.gpus.size());
  for (std::uint32_t a = 0; a < count; ++a) {
    v1::TopologyGpu& gpu = *out.add_gpus();
    put_gpu(node.gpus[a].info, a, gpu);
    add_parts(node.gpus[a], *gpu.mutable_parts());
    gpu.set_free_share(free_gpus_of(node, node.gpus[a]));
    for (std::uint32_t b = a + 1; b < count; ++b) {
      const model::GpuLink link = model::link_between(node.topology, count, a, b);
      if (link.kind != model::LinkKind::kUnknown) put_link(link, a, b, *out.add_links());
    }
  }
}

}  // namespace gpu_platform::api
