#include "hardware/hwloc/hwloc_host.h"

#include <hwloc.h>

#include <algorithm>
#include <utility>

namespace gpu_platform::hardware {
namespace {

struct Destroy {
  void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<hwloc_topology, Destroy>;

// Parts of hwloc that open drivers of devices.
constexpr const char* kDriverComponents[] = {"nvml", "cuda", "opencl", "gl", "rsmi", "levelzero"};

Topology load(const HwlocOptions& options) {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return nullptr;
  Topology topology(raw);
  for (const char* name : kDriverComponents) {
    // Refused where the component is not installed, which is as good.
    (void)hwloc_topology_set_components(raw, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, name);
  }
  // Also what a container keeps from us: sockets and NUMA nodes are the machine's. Fails where the
  // CPUs are not told, and then what is told counts.
  (void)hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  (void)hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
  if (!options.synthetic.empty() &&
      hwloc_topology_set_synthetic(raw, options.synthetic.c_str()) != 0) {
    return nullptr;
  }
  if (hwloc_topology_load(raw) != 0) return nullptr;
  return topology;
}

CpuSet cpus_of(hwloc_const_cpuset_t set) {
  CpuSet cpus;
  for (int cpu = hwloc_bitmap_first(set); cpu >= 0; cpu = hwloc_bitmap_next(set, cpu)) {
    cpus.push_back(static_cast<std::uint32_t>(cpu));
  }
  return cpus;
}

std::optional<std::uint32_t> count_of_objects(hwloc_topology_t topology, hwloc_obj_type_t type) {
  const int count = hwloc_get_nbobjs_by_type(topology, type);
  if (count <= 0) return std::nullopt;
  return static_cast<std::uint32_t>(count);
}

// The package that all of an object's CPUs lie in; nothing where there are several.
std::optional<std::uint32_t> socket_of(hwloc_topology_t topology, hwloc_obj_t object) {
  hwloc_obj_t package = nullptr;
  while ((package = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PACKAGE, package)) != nullptr) {
    if (hwloc_bitmap_isincluded(object->cpuset, package->cpuset)) return package->logical_index;
  }
  return std::nullopt;
}

std::vector<NumaNode> numa_nodes_of(hwloc_topology_t topology) {
  std::vector<NumaNode> nodes;
  hwloc_obj_t object = nullptr;
  while ((object = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, object)) != nullptr) {
    NumaNode node;
    node.id = object->os_index;
    node.cpus = cpus_of(object->cpuset);
    const std::uint64_t bytes = object->attr->numanode.local_memory;
    if (bytes > 0 && bytes >> 63 == 0) node.memory = base::Bytes(static_cast<std::int64_t>(bytes));
    // Memory without CPUs (of a GPU, or far away) belongs to no socket.
    if (!node.cpus.empty()) node.socket = socket_of(topology, object);
    nodes.push_back(std::move(node));
  }
  std::ranges::sort(nodes, {}, &NumaNode::id);
  return nodes;
}

class HwlocHost final : public HostTopology {
 public:
  HwlocHost(std::unique_ptr<HostTopology> kernel, HwlocOptions options)
      : kernel_(std::move(kernel)), options_(std::move(options)) {}

  base::Result<HostDescription> describe() override {
    TRY_ASSIGN(HostDescription host, kernel_->describe());
    topology_ = load(options_);  // anew: CPUs and devices come and go
    if (!topology_) return host;
    host.sockets = count_of_objects(topology_.get(), HWLOC_OBJ_PACKAGE);
    host.cores = count_of_objects(topology_.get(), HWLOC_OBJ_CORE);
    auto nodes = numa_nodes_of(topology_.get());
    if (!nodes.empty()) host.numa_nodes = std::move(nodes);
    return host;
  }

  std::optional<std::uint32_t> numa_node_of(std::string_view pci_address) override {
    // The kernel's file is exact; hwloc knows places that firmware did not tell the kernel.
    if (const auto node = kernel_->numa_node_of(pci_address)) return node;
    if (!topology_) return std::nullopt;
    std::string address(pci_address);
    const hwloc_obj_t device = hwloc_get_pcidev_by_busidstring(topology_.get(), address.c_str());
    if (device == nullptr) return std::nullopt;
    const hwloc_obj_t place = hwloc_get_non_io_ancestor_obj(topology_.get(), device);
    if (place == nullptr || hwloc_bitmap_weight(place->nodeset) != 1) return std::nullopt;
    return static_cast<std::uint32_t>(hwloc_bitmap_first(place->nodeset));
  }

 private:
  const std::unique_ptr<HostTopology> kernel_;
  const HwlocOptions options_;
  Topology topology_;  // of the latest describe()
};

}  // namespace

std::unique_ptr<HostTopology> open_hwloc_host(std::unique_ptr<HostTopology> kernel,
                                              HwlocOptions options) {
  return std::make_unique<HwlocHost>(std::move(kernel), std::move(options));
}

}  // namespace gpu_platform::hardware
