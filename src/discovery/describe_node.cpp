#include "discovery/describe_node.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/letters.h"
#include "hardware/cpu_list.h"
#include "model/gpu_catalogue.h"

namespace gpu_platform::discovery {
namespace {

using base::Result;
using hardware::GpuDescription;

// The short name of a GPU in messages.
std::string place(const NodeIdentity& identity, const GpuDescription& gpu) {
  return fmt::format("GPU {} of {}", gpu.index, identity.name);
}

// Why the GPU cannot be used, empty where it can.
std::string flaw_of(const GpuDescription& gpu) {
  if (!gpu.problem.empty()) return fmt::format("the driver reports: {}", gpu.problem);
  if (!gpu.uuid || gpu.uuid->empty()) return "the driver gives no UUID";
  if (!gpu.memory || gpu.memory->value() <= 0) return "the driver gives no memory size";
  return {};
}

// "00000000:1b:00.0" for any spelling of the driver: lower case, eight digits of domain.
std::string pci_address_of(const GpuDescription& gpu) {
  std::string address = base::to_lower(gpu.pci_address.value_or(""));
  const std::size_t domain_digits = address.find(':');
  const bool has_domain = domain_digits != std::string::npos &&
                          address.find(':', domain_digits + 1) != std::string::npos;
  if (has_domain && domain_digits < 8) address.insert(0, 8 - domain_digits, '0');
  return address;
}

model::GpuInfo usable_gpu(const GpuDescription& gpu) {
  model::GpuInfo info;
  info.uuid = *gpu.uuid;
  info.model = gpu.model.value_or("unknown");
  info.memory = *gpu.memory;
  info.type = model::gpu_type_of_model(info.model, info.memory);
  info.pci_address = pci_address_of(gpu);
  info.minor = gpu.minor.value_or(model::kUnknownMinor);
  info.numa_node = gpu.numa_node ? static_cast<std::int32_t>(*gpu.numa_node) : -1;
  if (gpu.compute_capability) info.compute_major = gpu.compute_capability->major;
  return info;
}

std::unexpected<base::Error> twice(const NodeIdentity& identity, std::string_view what,
                                   const std::string& value) {
  return base::fail(
      base::ErrorCode::kFailedPrecondition,
      fmt::format("{} reports two GPUs with the {} {}: the driver's answers cannot be "
                  "trusted, so the node is not used",
                  identity.name, what, value));
}

// Forgets what was before the latest boot: cards can be exchanged then.
void start_with(KnownGpus& known, const std::string& boot_id) {
  if (known.boot_id == boot_id) return;
  known = {boot_id, {}};
}

// Why the GPU's UUID is not believed; empty where it is, or where its place is not known.
std::string changed_uuid(const model::GpuInfo& gpu, KnownGpus& known) {
  if (gpu.pci_address.empty()) return {};
  const auto [first, is_new] = known.uuids.emplace(gpu.pci_address, gpu.uuid);
  if (is_new || first->second == gpu.uuid) return {};
  return fmt::format(
      "its UUID was {} and is {} now, without a reboot; it is used again under its former UUID, or "
      "after a reboot",
      first->second, gpu.uuid);
}

model::LinkKind kind_of(hardware::LinkKind kind) {
  switch (kind) {
    case hardware::LinkKind::kNvLink:
      return model::LinkKind::kNvLink;
    case hardware::LinkKind::kPix:
      return model::LinkKind::kPix;
    case hardware::LinkKind::kPxb:
      return model::LinkKind::kPxb;
    case hardware::LinkKind::kPhb:
      return model::LinkKind::kHostBridge;
    case hardware::LinkKind::kNode:
      return model::LinkKind::kNode;
    case hardware::LinkKind::kSystem:
      return model::LinkKind::kSystem;
  }
  return model::LinkKind::kUnknown;
}

std::vector<model::NumaNode> numa_nodes_of(const hardware::HostDescription& host) {
  std::vector<model::NumaNode> nodes;
  for (const hardware::NumaNode& node : host.numa_nodes) {
    nodes.push_back({node.id, node.socket ? static_cast<std::int32_t>(*node.socket) : -1,
                     hardware::format_cpu_list(node.cpus), node.memory.value_or(base::Bytes())});
  }
  return nodes;
}

// By the places of GPUs in the node, which are not the driver's indices where GPUs were left out.
std::vector<model::GpuLink> links_of(const std::vector<hardware::GpuLink>& all,
                                     const std::vector<std::uint32_t>& driver_indices) {
  const std::size_t gpus = driver_indices.size();
  if (all.empty() || gpus < 2) return {};
  std::vector<model::GpuLink> links(gpus * (gpus - 1) / 2);
  for (const hardware::GpuLink& link : all) {
    const auto a = std::ranges::find(driver_indices, link.a);
    const auto b = std::ranges::find(driver_indices, link.b);
    if (a == driver_indices.end() || b == driver_indices.end() || a == b) continue;
    const auto place = model::link_index(gpus, static_cast<std::size_t>(a - driver_indices.begin()),
                                         static_cast<std::size_t>(b - driver_indices.begin()));
    links[place] = {kind_of(link.kind), link.nvlinks, link.nvlink_version};
  }
  return links;
}

}  // namespace

Result<DescribedNode> describe_node(const NodeIdentity& given, const hardware::Inventory& inventory,
                                    KnownGpus& known) {
  NodeIdentity identity = given;
  if (identity.name.empty()) identity.name = inventory.host.name;
  if (inventory.host.cpus.empty()) {
    return base::fail(base::ErrorCode::kDataLoss, fmt::format("{} reports no CPU", identity.name));
  }
  DescribedNode node;
  node.info.name = identity.name;
  node.info.emulated = identity.emulated;
  node.info.boot_id = inventory.host.boot_id;
  node.info.cpus = static_cast<std::uint32_t>(inventory.host.cpus.size());
  node.info.memory = inventory.host.memory;
  node.info.driver_version = inventory.driver.driver_version.value_or("");
  node.info.topology.numa_nodes = numa_nodes_of(inventory.host);
  start_with(known, inventory.host.boot_id);
  std::set<std::string> uuids;
  std::set<std::string> addresses;
  std::vector<std::uint32_t> driver_indices;  // of the GPUs that are used
  for (const GpuDescription& gpu : inventory.gpus) {
    if (const std::string flaw = flaw_of(gpu); !flaw.empty()) {
      node.notes.push_back(fmt::format("{} is left out: {}", place(identity, gpu), flaw));
      continue;
    }
    model::GpuInfo info = usable_gpu(gpu);
    if (!uuids.insert(info.uuid).second) return twice(identity, "UUID", info.uuid);
    if (!info.pci_address.empty() && !addresses.insert(info.pci_address).second) {
      return twice(identity, "PCI address", info.pci_address);
    }
    if (const std::string change = changed_uuid(info, known); !change.empty()) {
      node.notes.push_back(fmt::format("{} is left out: {}", place(identity, gpu), change));
      continue;
    }
    if (!gpu.minor) {
      node.notes.push_back(
          fmt::format("{}: the driver gives no device number, so where devices are "
                      "guarded no job can open its device file",
                      place(identity, gpu)));
    }
    node.info.gpus.push_back(std::move(info));
    driver_indices.push_back(gpu.index);
  }
  node.info.topology.links = links_of(inventory.links, driver_indices);
  if (!inventory.fallback.empty()) {
    node.notes.push_back(fmt::format("{}: {}", identity.name, inventory.fallback));
  }
  if (inventory.problem) {
    node.notes.push_back(
        fmt::format("{} has no GPUs: {}", identity.name, inventory.problem->message));
  }
  return node;
}

}  // namespace gpu_platform::discovery
