#include "execution/kubernetes/cluster/node_gpus.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "execution/kubernetes/api_values.h"
#include "model/gpu_catalogue.h"

namespace gpu_platform::execution {

namespace {

// Device names end with a number: the shorter comes first.
bool is_before(const Device* a, const Device* b) {
  const auto key = [](const Device* device) {
    return std::tuple(std::string_view(device->pci_address), device->name.device.size(),
                      std::string_view(device->name.device), std::string_view(device->uuid));
  };
  return key(a) < key(b);
}

// A part of a GPU must not pass for one of the catalogue.
model::GpuInfo info_of(const Device& device) {
  model::GpuInfo info;
  info.uuid = device.uuid;
  info.model = device.model;
  info.type =
      device.is_mig() ? device.model : model::gpu_type_of_model(device.model, device.memory);
  info.memory = device.memory;
  info.pci_address = device.pci_address;
  info.minor = model::kUnknownMinor;
  return info;
}

using Texts = std::vector<std::string>;

// By the UUID of what is held: its own claims, and those on its parts.
std::map<std::string, Texts> holders_of(const std::vector<const Device*>& devices,
                                        const DeviceClaims& claims) {
  std::map<std::string, Texts> holders;
  for (const Device* device : devices) {
    const std::string text = claims.holders_of(device->name);
    if (text.empty()) continue;
    if (!device->uuid.empty()) holders[device->uuid].push_back(text);
    if (!device->parent.empty()) holders[device->parent].push_back(text);
  }
  return holders;
}

// What keeps all pods from the device: its own taint, and those of rules.
Texts taints_of(const Device& device, const DeviceTaintRules& rules) {
  Texts texts;
  if (!device.taint.empty()) texts.push_back(device.taint);
  if (std::string text = rules.taints_of(device.name); !text.empty()) texts.push_back(text);
  return texts;
}

// `texts` come first.
std::string unavailable_text(const Device& device, Texts texts,
                             const std::map<std::string, Texts>& holders,
                             const std::map<std::string, Texts>& of_whole) {
  for (const auto* const map : {&holders, &of_whole}) {
    const auto found = map->find(map == &holders ? device.uuid : device.parent);
    if (found == map->end()) continue;
    for (const std::string& text : found->second) {
      if (std::ranges::find(texts, text) == texts.end()) texts.push_back(text);
    }
  }
  return printable_line(fmt::format("{}", fmt::join(texts, "; ")));
}

// Claims on whole GPUs, which take all of their parts.
std::map<std::string, Texts> holders_of_whole(const std::vector<const Device*>& devices,
                                              const DeviceClaims& claims) {
  std::map<std::string, Texts> holders;
  for (const Device* device : devices) {
    if (device->is_mig() || device->uuid.empty()) continue;
    const std::string text = claims.holders_of(device->name);
    if (!text.empty()) holders[device->uuid].push_back(text);
  }
  return holders;
}

// GPU feature discovery marks what is no whole GPU: "…-SHARED", "…-MIG-1g.10gb".
bool is_part(std::string_view product) {
  return product.ends_with("-SHARED") || product.find("-MIG-") != std::string_view::npos;
}

}  // namespace

NodeGpus gpus_of_devices(const std::vector<const Device*>& devices, const DeviceClaims& claims,
                         const DeviceTaintRules& rules) {
  std::vector<const Device*> sorted;
  for (const Device* device : devices) {
    if (!device->uuid.empty()) sorted.push_back(device);
  }
  std::ranges::stable_sort(sorted, is_before);
  const auto holders = holders_of(devices, claims);
  const auto of_whole = holders_of_whole(devices, claims);
  NodeGpus gpus;
  for (const Device* device : sorted) {
    const Texts taints = taints_of(*device, rules);
    std::string text = unavailable_text(*device, taints, holders, of_whole);
    // Two pools that publish one GPU: it is there once.
    if (!gpus.unavailable.emplace(device->uuid, std::move(text)).second) continue;
    for (const std::string& taint : taints) {
      if (speaks_of_gpu_fault(taint)) gpus.faults.emplace_back(device->uuid, printable_line(taint));
    }
    gpus.gpus.push_back(info_of(*device));
    if (gpus.driver_version.empty()) gpus.driver_version = device->driver_version;
  }
  return gpus;
}

NodeGpus gpus_of_counts(std::string_view node, const NodeFacts& facts,
                        std::int64_t used_by_others) {
  NodeGpus gpus;
  const std::string_view product = facts.gpu_product;
  const std::int64_t count = facts.counted_gpus;
  const std::int64_t given = std::min<std::int64_t>(facts.given_gpus, count);
  const std::int64_t ours = given - std::clamp<std::int64_t>(used_by_others, 0, given);
  for (std::int64_t i = 0; i < count; ++i) {
    model::GpuInfo info;
    info.uuid = fmt::format("{}/{}", node, i);
    info.model = product;
    info.memory = facts.gpu_memory;
    info.type = is_part(product) ? info.model : model::gpu_type_of_model(product, info.memory);
    info.minor = model::kUnknownMinor;
    std::string& text = gpus.unavailable[info.uuid];
    if (i >= given) {
      text = fmt::format("{} GPUs not given by the device plugin", count - given);
    } else if (i >= ours) {
      text = fmt::format("{} GPUs counted by pods of others", used_by_others);
    }
    gpus.gpus.push_back(std::move(info));
  }
  return gpus;
}

}  // namespace gpu_platform::execution
