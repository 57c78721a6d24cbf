#include "execution/kubernetes/exporter/exporter_pods.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <nlohmann/json.hpp>

#include "execution/kubernetes/api_values.h"

namespace gpu_platform::execution {

namespace {

using Json = nlohmann::json;

bool is_of_nvidia(const Json& pod) {
  return text_at(pod, {"metadata", "labels", "app.kubernetes.io/name"}) == "dcgm-exporter" ||
         text_at(pod, {"metadata", "labels", "app"}) == "nvidia-dcgm-exporter";
}

bool is_ready(const Json& pod) {
  if (at(pod, {"metadata", "deletionTimestamp"}).is_string()) return false;
  return std::ranges::any_of(list_at(pod, {"status", "conditions"}), [](const Json& condition) {
    return text_at(condition, {"type"}) == "Ready" && text_at(condition, {"status"}) == "True";
  });
}

bool has_ended(const Json& pod) {
  const std::string_view phase = text_at(pod, {"status", "phase"});
  return phase == "Succeeded" || phase == "Failed";
}

}  // namespace

kubernetes::JsonFields ExporterPods::fields() {
  return {"metadata.name", "metadata.labels",        "metadata.deletionTimestamp", "spec.nodeName",
          "status.phase",  "status.conditions.type", "status.conditions.status"};
}

void ExporterPods::begin_list() {
  for (auto& [name, known] : known_) known.is_listed = false;
}

void ExporterPods::put(const Json& pod) {
  const std::string name(text_at(pod, {"metadata", "name"}));
  const std::string node(text_at(pod, {"spec", "nodeName"}));
  forget(name);
  if (name.empty() || node.empty() || has_ended(pod)) return;
  if (!takes_all_ && !is_of_nvidia(pod)) return;
  known_[name] = {node, true};
  std::vector<Pod>& pods = by_node_[node];
  pods.push_back({name, is_ready(pod)});
  std::ranges::sort(pods, {},
                    [](const Pod& each) { return std::tuple(!each.is_ready, each.name); });
  changed_.push_back(node);
}

void ExporterPods::remove(const Json& pod) {
  forget(std::string(text_at(pod, {"metadata", "name"})));
}

void ExporterPods::end_list() {
  std::vector<std::string> gone;
  for (const auto& [name, known] : known_) {
    if (!known.is_listed) gone.push_back(name);
  }
  for (const std::string& name : gone) forget(name);
}

void ExporterPods::forget(const std::string& name) {
  const auto known = known_.find(name);
  if (known == known_.end()) return;
  const auto node = by_node_.find(known->second.node);
  std::erase_if(node->second, [&](const Pod& pod) { return pod.name == name; });
  changed_.push_back(node->first);
  if (node->second.empty()) by_node_.erase(node);
  known_.erase(known);
}

const ExporterPods::Pod* ExporterPods::pod_on(std::string_view node) const {
  const auto found = by_node_.find(node);
  return found == by_node_.end() ? nullptr : &found->second.front();
}

std::vector<std::string> ExporterPods::take_changed() {
  std::vector<std::string> changed = std::exchange(changed_, {});
  std::ranges::sort(changed);
  changed.erase(std::ranges::unique(changed).begin(), changed.end());
  return changed;
}

}  // namespace gpu_platform::execution
