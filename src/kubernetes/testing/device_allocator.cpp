#include "kubernetes/testing/device_allocator.h"

#include <algorithm>
#include <regex>
#include <utility>

#include "kubernetes/testing/json_access.h"

namespace gpu_platform::kubernetes {

using nlohmann::json;

namespace {

const ObjectKey kSlices = {
    .group = "resource.k8s.io", .resource = "resourceslices", .namespace_name = "", .name = ""};
const ObjectKey kAllocatable = {
    .group = "resource.k8s.io", .resource = "resourceclaims", .namespace_name = "", .name = ""};

std::string uuid_of(const json& device) {
  for (const auto& [name, value] : value_at(device, "/attributes").items()) {
    if (name == "uuid" || name.ends_with("/uuid")) return text_at(value, "/string");
  }
  return {};
}

}  // namespace

std::set<std::string> uuids_in(const std::string& expression) {
  static const std::regex kUse(R"(\.uuid\s*(==\s*["'][^"']*["']|in\s*\[[^\]]*\]))");
  static const std::regex kText(R"(["']([^"']*)["'])");
  std::set<std::string> uuids;
  const std::sregex_iterator end;
  for (std::sregex_iterator use(expression.begin(), expression.end(), kUse); use != end; ++use) {
    const std::string values = use->str(1);
    for (std::sregex_iterator text(values.begin(), values.end(), kText); text != end; ++text) {
      uuids.insert(text->str(1));
    }
  }
  return uuids;
}

DeviceAllocator::DeviceAllocator(const ObjectStore& store) {
  for (const StoredObject& slice : store.list(kSlices)) {
    const json& spec = value_at(*slice.object, "/spec");
    for (const json& device : value_at(spec, "/devices")) {
      devices_.push_back(
          {.id = {text_at(spec, "/driver"), text_at(spec, "/pool/name"), text_at(device, "/name")},
           .node = text_at(spec, "/nodeName"),
           .uuid = uuid_of(device)});
    }
  }
  for (const StoredObject& stored : store.list(kAllocatable)) {
    for (const json& result : value_at(*stored.object, "/status/allocation/devices/results")) {
      taken_.insert(
          {text_at(result, "/driver"), text_at(result, "/pool"), text_at(result, "/device")});
    }
  }
}

std::string DeviceAllocator::node_of(const json& allocation) {
  return text_at(allocation, "/nodeSelector/nodeSelectorTerms/0/matchFields/0/values/0");
}

bool DeviceAllocator::take(const json& request, const std::string& node, json& results) {
  std::int64_t wanted = number_at(request, "/exactly/count", 1);
  std::vector<std::set<std::string>> admitted;
  for (const json& selector : value_at(request, "/exactly/selectors")) {
    std::set<std::string> uuids = uuids_in(text_at(selector, "/cel/expression"));
    if (!uuids.empty()) admitted.push_back(std::move(uuids));
  }
  for (const Device& device : devices_) {
    if (wanted == 0) break;
    const bool fits = device.node == node && !taken_.contains(device.id) &&
                      std::ranges::all_of(
                          admitted, [&](const auto& uuids) { return uuids.contains(device.uuid); });
    if (!fits) continue;
    --wanted;
    taken_.insert(device.id);
    results.push_back({{"request", text_at(request, "/name")},
                       {"driver", std::get<0>(device.id)},
                       {"pool", std::get<1>(device.id)},
                       {"device", std::get<2>(device.id)}});
  }
  return wanted == 0;
}

std::optional<json> DeviceAllocator::allocate(const json& spec, const std::string& node) {
  const std::set<DeviceId> before = taken_;
  json results = json::array();
  for (const json& request : value_at(spec, "/devices/requests")) {
    if (take(request, node, results)) continue;
    taken_ = before;
    return std::nullopt;
  }
  json field = {{"key", "metadata.name"}, {"operator", "In"}};
  field["values"] = json::array({node});
  json allocation;
  allocation["devices"]["results"] = std::move(results);
  allocation["nodeSelector"]["nodeSelectorTerms"][0]["matchFields"][0] = std::move(field);
  return allocation;
}

}  // namespace gpu_platform::kubernetes
