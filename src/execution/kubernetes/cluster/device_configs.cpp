#include "execution/kubernetes/cluster/device_configs.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "execution/kubernetes/api_values.h"
#include "execution/kubernetes/pods/pod_view.h"

namespace gpu_platform::execution {

namespace {

using Json = nlohmann::json;

std::size_t source_index(DeviceConfigs::Source source) {
  return static_cast<std::size_t>(source);
}

std::string config_key(DeviceConfigs::Source source, const Json& object) {
  return source == DeviceConfigs::Source::kClaim ? key_of(object)
                                                 : line_at(object, {"metadata", "name"});
}

const Json& config_in(DeviceConfigs::Source source, const Json& object) {
  return source == DeviceConfigs::Source::kClaim ? list_at(object, {"spec", "devices", "config"})
                                                 : list_at(object, {"spec", "config"});
}

// Without `requests` it counts for all requests of the claim.
void add_config(Json& configs, const Json& config, const char* from, const Json& requests) {
  if (!config.is_object()) return;
  Json entry = config;
  entry["source"] = from;
  entry["requests"] = requests;
  configs.push_back(std::move(entry));
}

bool names_any(const Json& wanted, const Json& requests) {
  return std::ranges::any_of(requests, [&](const Json& request) {
    return std::ranges::find(wanted, at(request, {"name"})) != wanted.end();
  });
}

}  // namespace

void DeviceConfigs::begin_list(Source source) {
  std::optional<std::set<std::string>>& unseen = unseen_.at(source_index(source));
  unseen.emplace();
  for (const auto& [key, config] : configs_.at(source_index(source))) unseen->insert(key);
}

void DeviceConfigs::end_list(Source source) {
  std::optional<std::set<std::string>>& unseen = unseen_.at(source_index(source));
  if (!unseen) return;
  for (const std::string& key : *unseen) configs_.at(source_index(source)).erase(key);
  unseen.reset();
}

void DeviceConfigs::put(Source source, const Json& object) {
  const std::string key = config_key(source, object);
  if (auto& unseen = unseen_.at(source_index(source))) unseen->erase(key);
  const Json& config = config_in(source, object);
  if (config.empty()) {
    configs_.at(source_index(source)).erase(key);
  } else {
    configs_.at(source_index(source)).insert_or_assign(key, config);
  }
}

void DeviceConfigs::remove(Source source, const Json& object) {
  configs_.at(source_index(source)).erase(config_key(source, object));
}

Json DeviceConfigs::of_allocation(const std::string& claim, const Json& requests) const {
  Json configs = Json::array();
  const Configs& classes = configs_.at(source_index(DeviceConfigs::Source::kClass));
  std::vector<std::pair<std::string, Json>> uses;  // of classes, in the order of the requests
  for (const Json& request : requests) {
    const std::string name = line_at(request, {"exactly", "deviceClassName"});
    auto use = std::ranges::find(uses, name, &std::pair<std::string, Json>::first);
    if (use == uses.end()) use = uses.insert(uses.end(), {name, Json::array()});
    use->second.push_back(at(request, {"name"}));
  }
  for (const auto& [name, names] : uses) {
    const auto found = classes.find(name);
    if (found == classes.end()) continue;
    for (const Json& config : found->second) add_config(configs, config, "FromClass", names);
  }
  const Configs& claims = configs_.at(source_index(DeviceConfigs::Source::kClaim));
  const auto own = claims.find(claim);
  if (own == claims.end()) return configs;
  for (const Json& config : own->second) {
    const Json& wanted = list_at(config, {"requests"});
    if (wanted.empty() || names_any(wanted, requests))
      add_config(configs, config, "FromClaim", wanted);
  }
  return configs;
}

}  // namespace gpu_platform::execution
