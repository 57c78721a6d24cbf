#include "execution/kubernetes/cluster/device_reports.h"

#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "execution/kubernetes/api_values.h"

namespace gpu_platform::execution {

namespace {

using Json = nlohmann::json;

// More than a machine has; a pod's status is bounded by the API server, and so is this.
constexpr std::size_t kMaxReports = 256;

void read_resources(const Json& status, std::vector<DeviceReport>& reports) {
  for (const Json& resource : list_at(status, {"resources"})) {
    const std::string_view health = text_at(resource, {"health"});
    if (health != "Healthy" && health != "Unhealthy") continue;
    if (reports.size() == kMaxReports) return;
    reports.push_back({line_at(resource, {"resourceID"}), health == "Healthy"});
  }
}

// The device of the name. Where the name of one is the end of another's, the longer one is meant.
const Device* find_device(std::string_view resource, const std::vector<const Device*>& devices) {
  const Device* found = nullptr;
  for (const Device* device : devices) {
    const bool is_longer =
        found == nullptr || device->name.device.size() > found->name.device.size();
    if (is_longer && names_device(resource, *device)) found = device;
  }
  return found;
}

}  // namespace

std::optional<PodReports> reports_of_pod(const Json& pod) {
  const std::string_view phase = text_at(pod, {"status", "phase"});
  if (phase == "Succeeded" || phase == "Failed") return std::nullopt;
  PodReports reports;
  reports.node = line_at(pod, {"spec", "nodeName"});
  if (reports.node.empty()) return std::nullopt;
  for (const Json& container : list_at(pod, {"status", "containerStatuses"})) {
    for (const Json& status : list_at(container, {"allocatedResourcesStatus"})) {
      read_resources(status, reports.devices);
    }
  }
  return reports.devices.empty() ? std::nullopt : std::optional(std::move(reports));
}

bool names_device(std::string_view resource, const Device& device) {
  const DeviceName& name = device.name;
  if (resource == fmt::format("{}/{}/{}", name.driver, name.pool, name.device)) return true;
  // A CDI name begins with a vendor, which drivers form of their own names. The rest is theirs.
  const std::size_t kind_end = resource.find('=');
  if (kind_end == std::string_view::npos) return false;
  if (resource.substr(0, kind_end).find(name.driver) == std::string_view::npos) return false;
  const std::string_view last = resource.substr(kind_end + 1);
  if (last == name.device || (!device.uuid.empty() && last == device.uuid)) return true;
  return last.ends_with(fmt::format("-{}", name.device));
}

std::set<std::string> DeviceReports::put(const std::string& pod,
                                         std::optional<PodReports> reports) {
  std::set<std::string> changed;
  const auto old = reports_.find(pod);
  if (old != reports_.end()) {
    if (old->second == reports) return changed;
    const std::string& node = old->second.node;
    changed.insert(node);
    const auto pods = pods_of_nodes_.find(node);
    pods->second.erase(pod);
    if (pods->second.empty()) pods_of_nodes_.erase(pods);
    reports_.erase(old);
  }
  if (!reports) return changed;
  changed.insert(reports->node);
  pods_of_nodes_[reports->node].insert(pod);
  reports_.emplace(pod, *std::move(reports));
  return changed;
}

std::map<std::string, bool> DeviceReports::health_of(
    std::string_view node, const std::vector<const Device*>& devices) const {
  std::map<std::string, bool> health;
  const auto pods = pods_of_nodes_.find(node);
  if (pods == pods_of_nodes_.end()) return health;
  for (const std::string& pod : pods->second) {
    for (const DeviceReport& report : reports_.at(pod).devices) {
      const Device* device = find_device(report.resource, devices);
      if (device == nullptr || device->uuid.empty()) continue;
      const auto [known, is_first] = health.emplace(device->uuid, report.is_healthy);
      if (!is_first) known->second = known->second && report.is_healthy;
    }
  }
  return health;
}

std::set<std::string> DeviceReports::pods() const {
  std::set<std::string> pods;
  for (const auto& [pod, reports] : reports_) pods.insert(pod);
  return pods;
}

}  // namespace gpu_platform::execution
