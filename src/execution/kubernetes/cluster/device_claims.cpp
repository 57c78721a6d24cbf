#include "execution/kubernetes/cluster/device_claims.h"

#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "execution/kubernetes/api_values.h"
#include "execution/kubernetes/pods/pod_view.h"

namespace gpu_platform::execution {

namespace {

using Json = nlohmann::json;

std::string text_of(const Json& claim, const std::string& key) {
  std::vector<std::string> pods;
  for (const Json& user : list_at(claim, {"status", "reservedFor"})) {
    if (std::string name = line_at(user, {"name"}); !name.empty()) pods.push_back(std::move(name));
  }
  const std::string of_pods = pods.empty() ? "" : fmt::format(" of pod {}", fmt::join(pods, ", "));
  return printable_line(fmt::format("claim {}{}", key, of_pods));
}

}  // namespace

kubernetes::JsonFields fields_of_claims(DeviceMode devices) {
  kubernetes::JsonFields fields = {"metadata.name", "metadata.namespace", "metadata.labels",
                                   "status.reservedFor", "status.allocation.devices"};
  if (devices == DeviceMode::kOwned) fields.add("spec.devices.config");
  return fields;
}

std::optional<DeviceClaim> view_of_claim(const Json& claim) {
  DeviceClaim view;
  for (const Json& result : list_at(claim, {"status", "allocation", "devices", "results"})) {
    if (flag_at(result, {"adminAccess"})) continue;
    view.devices.push_back(
        {line_at(result, {"driver"}), line_at(result, {"pool"}), line_at(result, {"device"})});
  }
  if (view.devices.empty()) return std::nullopt;
  view.key = key_of(claim);
  view.text = text_of(claim, view.key);
  return view;
}

std::set<DeviceName> DeviceClaims::put(DeviceClaim claim) {
  if (const auto old = claims_.find(claim.key); old != claims_.end() && old->second == claim) {
    return {};
  }
  std::set<DeviceName> changed = remove(claim.key);
  for (const DeviceName& device : claim.devices) {
    changed.insert(device);
    by_device_[device].insert(claim.key);
  }
  std::string key = claim.key;
  claims_.emplace(std::move(key), std::move(claim));
  return changed;
}

std::set<DeviceName> DeviceClaims::remove(std::string_view key) {
  std::set<DeviceName> changed;
  const auto found = claims_.find(key);
  if (found == claims_.end()) return changed;
  for (const DeviceName& device : found->second.devices) {
    changed.insert(device);
    const auto keys = by_device_.find(device);
    if (keys == by_device_.end()) continue;
    keys->second.erase(found->first);
    if (keys->second.empty()) by_device_.erase(keys);
  }
  claims_.erase(found);
  return changed;
}

std::string DeviceClaims::holders_of(const DeviceName& device) const {
  const auto keys = by_device_.find(device);
  if (keys == by_device_.end()) return {};
  std::vector<std::string_view> texts;
  for (const std::string& key : keys->second) texts.push_back(claims_.at(key).text);
  return printable_line(fmt::format("{}", fmt::join(texts, "; ")));
}

std::set<std::string> DeviceClaims::keys() const {
  std::set<std::string> keys;
  for (const auto& [key, claim] : claims_) keys.insert(key);
  return keys;
}

}  // namespace gpu_platform::execution
