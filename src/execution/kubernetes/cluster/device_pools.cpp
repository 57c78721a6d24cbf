#include "execution/kubernetes/cluster/device_pools.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/letters.h"
#include "execution/kubernetes/api_values.h"

namespace gpu_platform::execution {

namespace {

using Json = nlohmann::json;

// More than any device has.
constexpr std::int64_t kMaxDeviceMemory = std::int64_t{1} << 50;

// A name without a domain is in that of the driver, and may be written with it.
const Json& qualified_at(const Json& map, std::string_view driver, std::string_view name) {
  const Json& plain = at(map, {name});
  return plain.is_null() ? at(map, {fmt::format("{}/{}", driver, name)}) : plain;
}

std::string attribute(const Json& device, std::string_view driver, std::string_view name) {
  const Json& value = qualified_at(map_at(device, {"attributes"}), driver, name);
  const std::string text = line_at(value, {"string"});
  return text.empty() ? line_at(value, {"version"}) : text;
}

// "0000:1B:00.0" and "00000000:1b:00.0" are one address.
std::string pci_address(std::string_view text) {
  constexpr std::size_t kShortDomain = 4;
  const std::string address = base::to_lower(text);
  return address.find(':') == kShortDomain ? "0000" + address : address;
}

std::string repelling_taint(const Json& device) {
  for (const Json& taint : list_at(device, {"taints"})) {
    if (keeps_pods_away(taint)) return taint_text(taint);
  }
  return {};
}

base::Bytes memory_of(const Json& device, std::string_view driver) {
  const Json& memory = qualified_at(map_at(device, {"capacity"}), driver, "memory");
  const std::int64_t bytes = parse_quantity(text_at(memory, {"value"})).value_or(0);
  return base::Bytes(std::min(bytes, kMaxDeviceMemory));
}

// Nothing if it is no GPU and no part of one.
std::optional<Device> device_of(const Json& json, std::string_view driver) {
  const std::string type = attribute(json, driver, "type");
  if (type != "gpu" && type != "mig") return std::nullopt;
  Device device;
  device.name.device = line_at(json, {"name"});
  device.node = line_at(json, {"nodeName"});
  device.uuid = attribute(json, driver, "uuid");
  device.model = attribute(json, driver, "productName");
  if (type == "mig") {
    device.parent = attribute(json, driver, "parentUUID");
    device.model = fmt::format("{} MIG {}", device.model, attribute(json, driver, "profile"));
  }
  const bool is_nothing = device.uuid.empty() && device.parent.empty();
  if (device.name.device.empty() || is_nothing) return std::nullopt;
  device.driver_version = attribute(json, driver, "driverVersion");
  device.pci_address =
      pci_address(line_at(json, {"attributes", "resource.kubernetes.io/pciBusID", "string"}));
  device.memory = memory_of(json, driver);
  device.taint = repelling_taint(json);
  return device;
}

}  // namespace

DevicePools::Slice DevicePools::slice_of(const Json& json) const {
  Slice slice;
  slice.pool = line_at(json, {"spec", "pool", "name"});
  slice.generation = number_at(json, {"spec", "pool", "generation"});
  slice.slices = number_at(json, {"spec", "pool", "resourceSliceCount"});
  const std::string node = line_at(json, {"spec", "nodeName"});
  for (const Json& one : list_at(json, {"spec", "devices"})) {
    std::optional<Device> device = device_of(one, driver_);
    if (!device) continue;
    device->name.driver = driver_;
    device->name.pool = slice.pool;
    if (!node.empty()) device->node = node;
    // A device of several nodes, or of all, is no GPU of a machine.
    if (!device->node.empty()) slice.devices.push_back(std::move(*device));
  }
  return slice;
}

std::set<std::string> DevicePools::put(const Json& json) {
  const std::string name = line_at(json, {"metadata", "name"});
  if (name.empty()) return {};
  if (text_at(json, {"spec", "driver"}) != driver_) return remove(name);
  Slice slice = slice_of(json);
  std::set<std::string> changed;
  if (const auto old = slices_.find(name); old != slices_.end() && old->second.pool != slice.pool) {
    changed = remove(name);
  }
  const std::string pool = slice.pool;
  slices_[name] = std::move(slice);
  pools_[pool].slices.insert(name);
  settle(pool, changed);
  return changed;
}

std::set<std::string> DevicePools::remove(std::string_view slice_name) {
  std::set<std::string> changed;
  const auto found = slices_.find(slice_name);
  if (found == slices_.end()) return changed;
  const std::string pool = found->second.pool;
  pools_[pool].slices.erase(found->first);
  slices_.erase(found);
  settle(pool, changed);
  return changed;
}

void DevicePools::settle(const std::string& pool_name, std::set<std::string>& changed) {
  const Pool& pool = pools_[pool_name];
  if (pool.slices.empty()) {
    replace(pool_name, {}, changed);
    pools_.erase(pool_name);
    return;
  }
  std::int64_t newest = slices_.at(*pool.slices.begin()).generation;
  for (const std::string& name : pool.slices) {
    newest = std::max(newest, slices_.at(name).generation);
  }
  std::map<DeviceName, Device> devices;
  std::int64_t found = 0;
  std::int64_t wanted = 0;
  for (const std::string& name : pool.slices) {
    const Slice& slice = slices_.at(name);
    if (slice.generation != newest) continue;
    ++found;
    wanted = std::max(wanted, slice.slices);
    for (const Device& device : slice.devices) devices.emplace(device.name, device);
  }
  if (found == wanted) replace(pool_name, std::move(devices), changed);
}

void DevicePools::replace(const std::string& pool_name, std::map<DeviceName, Device> devices,
                          std::set<std::string>& changed) {
  Pool& pool = pools_[pool_name];
  if (pool.devices == devices) return;
  for (const auto& [name, device] : pool.devices) {
    changed.insert(device.node);
    const auto of_node = pools_of_nodes_.find(device.node);
    if (of_node == pools_of_nodes_.end()) continue;
    of_node->second.erase(pool_name);
    if (of_node->second.empty()) pools_of_nodes_.erase(of_node);
  }
  pool.devices = std::move(devices);
  for (const auto& [name, device] : pool.devices) {
    changed.insert(device.node);
    pools_of_nodes_[device.node].insert(pool_name);
  }
}

std::vector<const Device*> DevicePools::devices_of(std::string_view node) const {
  std::vector<const Device*> devices;
  const auto of_node = pools_of_nodes_.find(node);
  if (of_node == pools_of_nodes_.end()) return devices;
  for (const std::string& pool : of_node->second) {
    for (const auto& [name, device] : pools_.at(pool).devices) {
      if (device.node == node) devices.push_back(&device);
    }
  }
  return devices;
}

std::string DevicePools::node_of(const DeviceName& device) const {
  const auto pool = pools_.find(device.pool);
  if (pool == pools_.end()) return {};
  const auto found = pool->second.devices.find(device);
  return found == pool->second.devices.end() ? std::string() : found->second.node;
}

std::set<std::string> DevicePools::nodes_of(const std::optional<std::string>& pool) const {
  std::set<std::string> nodes;
  for (const auto& [node, pools] : pools_of_nodes_) {
    if (!pool || pools.contains(*pool)) nodes.insert(node);
  }
  return nodes;
}

std::set<std::string> DevicePools::slice_names() const {
  std::set<std::string> names;
  for (const auto& [name, slice] : slices_) names.insert(name);
  return names;
}

}  // namespace gpu_platform::execution
