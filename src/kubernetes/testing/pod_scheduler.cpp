#include "kubernetes/testing/pod_scheduler.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "kubernetes/testing/json_access.h"
#include "kubernetes/testing/object_rules.h"

namespace gpu_platform::kubernetes {

using nlohmann::json;

namespace {

const ObjectKey kAllNodes = {.group = "", .resource = "nodes", .namespace_name = "", .name = ""};
constexpr const char* kCountedGpus = "nvidia.com/gpu";

std::string label_of(const StoredObject& node, const std::string& label) {
  const json& labels = value_at(*node.object, "/metadata/labels");
  if (label == "metadata.name") return node.key.name;
  const auto found = labels.find(label);
  if (found != labels.end()) return found->get<std::string>();
  return label == "kubernetes.io/hostname" ? node.key.name : std::string();
}

// Of node affinity, the operator In alone.
bool meets_term(const json& term, const StoredObject& node) {
  for (const char* list : {"matchFields", "matchExpressions"}) {
    if (!term.contains(list)) continue;
    for (const json& expression : term[list]) {
      const json& values = value_at(expression, "/values");
      const std::string own = label_of(node, text_at(expression, "/key"));
      if (std::find(values.begin(), values.end(), json(own)) == values.end()) return false;
    }
  }
  return true;
}

bool is_selected(const json& spec, const StoredObject& node) {
  for (const auto& [label, value] : value_at(spec, "/nodeSelector").items()) {
    if (json(label_of(node, label)) != value) return false;
  }
  const json& terms = value_at(
      spec,
      "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms");
  return terms.empty() || std::any_of(terms.begin(), terms.end(),
                                      [&](const json& term) { return meets_term(term, node); });
}

bool is_tolerated(const json& spec, const json& taint) {
  const json& tolerations = value_at(spec, "/tolerations");
  return std::any_of(tolerations.begin(), tolerations.end(), [&](const json& toleration) {
    const std::string key = text_at(toleration, "/key");
    const std::string effect = text_at(toleration, "/effect");
    const bool is_any_value = text_at(toleration, "/operator") == "Exists";
    return (key.empty() || key == text_at(taint, "/key")) &&
           (effect.empty() || effect == text_at(taint, "/effect")) &&
           (is_any_value || text_at(toleration, "/value") == text_at(taint, "/value"));
  });
}

bool has_hard_taint(const json& spec, const StoredObject& node) {
  const json& taints = value_at(*node.object, "/spec/taints");
  return std::any_of(taints.begin(), taints.end(), [&](const json& taint) {
    return text_at(taint, "/effect") != "PreferNoSchedule" && !is_tolerated(spec, taint);
  });
}

// "2" or 2.
std::int64_t count_in(const json& resources) {
  const auto found = resources.find(kCountedGpus);
  if (found == resources.end()) return 0;
  if (found->is_number_integer()) return found->get<std::int64_t>();
  return found->is_string() ? std::strtoll(found->get<std::string>().c_str(), nullptr, 10) : 0;
}

std::int64_t counted_gpus_of(const json& spec) {
  std::int64_t count = 0;
  for (const json& container : value_at(spec, "/containers")) {
    count += count_in(value_at(container, "/resources/limits"));
  }
  return count;
}

bool waits_for_scheduler(const json& pod) {
  return text_at(pod, "/spec/nodeName").empty() && is_empty_at(pod, "/spec/schedulingGates") &&
         value_at(pod, "/metadata/deletionTimestamp").is_null() && !is_pod_over(pod) &&
         text_at(pod, "/spec/schedulerName") == "default-scheduler";
}

}  // namespace

ApiPath path_of(const ObjectKey& key) {
  return {.group = key.group,
          .version = "v1",
          .namespace_name = key.namespace_name,
          .resource = key.resource,
          .name = key.name,
          .subresource = ""};
}

std::vector<ObjectKey> device_requests_of(const ObjectKey& pod, const json& spec) {
  std::vector<ObjectKey> keys;
  for (const json& entry : value_at(spec, "/resourceClaims")) {
    keys.push_back({.group = "resource.k8s.io",
                    .resource = "resourceclaims",
                    .namespace_name = pod.namespace_name,
                    .name = text_at(entry, "/resourceClaimName")});
  }
  return keys;
}

bool PodScheduler::has_counted_gpus(const json& spec, const StoredObject& node) const {
  const std::int64_t wanted = counted_gpus_of(spec);
  if (wanted == 0) return true;
  std::int64_t left = count_in(value_at(*node.object, "/status/allocatable"));
  for (const StoredObject& other : store_.list(kAllPods)) {
    if (text_at(*other.object, "/spec/nodeName") != node.key.name || is_pod_over(*other.object)) {
      continue;
    }
    left -= counted_gpus_of(value_at(*other.object, "/spec"));
  }
  return left >= wanted;
}

std::string PodScheduler::why_not(const ObjectKey& pod, const json& spec, const StoredObject& node,
                                  std::map<ObjectKey, json>& allocations) const {
  if (value_at(*node.object, "/spec/unschedulable") == json(true)) {
    return "node(s) were unschedulable";
  }
  if (!is_selected(spec, node)) return "node(s) didn't match Pod's node affinity/selector";
  if (has_hard_taint(spec, node)) return "node(s) had untolerated taint(s)";
  if (!has_counted_gpus(spec, node)) return fmt::format("Insufficient {}", kCountedGpus);
  DeviceAllocator devices(store_);
  for (const ObjectKey& key : device_requests_of(pod, spec)) {
    const ObjectPtr found = store_.find(key);
    const json& current = value_at(*found, "/status/allocation");
    if (!current.is_null()) {
      const std::string place = DeviceAllocator::node_of(current);
      if (!place.empty() && place != node.key.name) return "cannot allocate all claims";
      continue;
    }
    auto allocation = devices.allocate(value_at(*found, "/spec"), node.key.name);
    if (!allocation) return "cannot allocate all claims";
    allocations[key] = *std::move(allocation);
  }
  return {};
}

void PodScheduler::reserve(const ObjectKey& key, const json& pod,
                           const std::map<ObjectKey, json>& allocations) {
  const json entry = {
      {"resource", "pods"}, {"name", key.name}, {"uid", text_at(pod, "/metadata/uid")}};
  for (const ObjectKey& wanted : device_requests_of(key, value_at(pod, "/spec"))) {
    json object = *store_.find(wanted);
    const auto allocation = allocations.find(wanted);
    if (allocation != allocations.end()) {
      object["status"]["allocation"] = allocation->second;
      object["metadata"]["finalizers"].push_back(kClaimFinalizer);
    }
    json& reserved = object["status"]["reservedFor"];
    if (std::find(reserved.begin(), reserved.end(), entry) == reserved.end()) {
      reserved.push_back(entry);
    }
    calls_.overwrite(path_of(wanted), std::move(object));
  }
}

bool PodScheduler::bind(const ObjectKey& key, const json& pod) {
  const json& spec = value_at(pod, "/spec");
  for (const ObjectKey& wanted : device_requests_of(key, spec)) {
    const ObjectPtr found = store_.find(wanted);
    if (!found || !value_at(*found, "/metadata/deletionTimestamp").is_null()) return false;
  }
  std::map<std::string, std::uint32_t> reasons;
  const std::vector<StoredObject> nodes = store_.list(kAllNodes);
  json after = pod;
  for (const StoredObject& node : nodes) {
    std::map<ObjectKey, json> allocations;
    const std::string why = why_not(key, spec, node, allocations);
    if (!why.empty()) {
      ++reasons[why];
      continue;
    }
    reserve(key, pod, allocations);
    after["spec"]["nodeName"] = node.key.name;
    set_condition(after, {.type = "PodScheduled", .status = "True"}, calls_.now());
    calls_.overwrite(path_of(key), std::move(after));
    return true;
  }
  std::string why;
  for (const auto& [text, count] : reasons) {
    why += fmt::format("{}{} {}", why.empty() ? "" : ", ", count, text);
  }
  set_condition(
      after,
      {.type = "PodScheduled",
       .status = "False",
       .reason = "Unschedulable",
       .message = nodes.empty() ? "no nodes available to schedule pods"
                                : fmt::format("0/{} nodes are available: {}.", nodes.size(), why)},
      calls_.now());
  calls_.overwrite(path_of(key), std::move(after));
  return false;
}

std::uint32_t PodScheduler::bind_all() {
  std::uint32_t bound = 0;
  for (const StoredObject& pod : store_.list(kAllPods)) {
    if (waits_for_scheduler(*pod.object) && bind(pod.key, *pod.object)) ++bound;
  }
  return bound;
}

}  // namespace gpu_platform::kubernetes
