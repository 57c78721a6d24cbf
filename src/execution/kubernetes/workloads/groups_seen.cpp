#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "execution/kubernetes/api_values.h"
#include "execution/kubernetes/names.h"
#include "execution/kubernetes/pods/manifests.h"
#include "execution/kubernetes/workloads/groups.h"

// What WorkloadGroups sees: namespaces, pods, owners, and news of the jobs of workloads.

namespace gpu_platform::execution {

namespace {

using Json = nlohmann::json;

constexpr std::string_view kCancelledReason = "Cancelled";

AdmissionCondition cancelled_condition(std::string_view why) {
  return not_admitted(
      kCancelledReason,
      fmt::format("{}: no pod of this workload is started any more; delete the workload", why));
}

std::string namespace_label(const Json& object, std::string_view label) {
  return line_at(object, {"metadata", "labels", label});
}

}  // namespace

void WorkloadGroups::begin_namespaces() {
  namespaces_not_in_list_.clear();
  for (const auto& [name, terms] : terms_) namespaces_not_in_list_.insert(name);
}

void WorkloadGroups::see_namespace(const Json& object) {
  const std::string name = line_at(object, {"metadata", "name"});
  NamespaceTerms terms{namespace_label(object, kQueueLabel), namespace_label(object, kUserLabel),
                       namespace_label(object, kTeamLabel)};
  if (terms.queue.empty()) return remove_namespace(object);
  namespaces_not_in_list_.erase(name);
  const auto known = terms_.find(name);
  if (known != terms_.end() && known->second == terms) return;
  terms_[name] = std::move(terms);
  for (const auto& [uid, pod] : pods_) {
    if (pod.namespace_name != name) continue;
    Group& group = group_of(pod);
    group.pods[uid] = pod;
    group.try_again_at = {};  // other terms, another answer
    change(group, pod.workload.key());
  }
}

void WorkloadGroups::remove_namespace(const Json& object) {
  const std::string name = line_at(object, {"metadata", "name"});
  namespaces_not_in_list_.erase(name);
  without_rights_.erase(name);
  if (terms_.erase(name) == 0) return;
  for (auto& [key, group] : groups_) {
    if (group.workload.namespace_name != name) continue;
    group.pods.clear();
    change(group, key);
  }
}

void WorkloadGroups::see_rights(const std::string& namespace_name, bool has_rights) {
  if (!has_rights) {
    without_rights_.insert(namespace_name);
    return;
  }
  if (without_rights_.erase(namespace_name) == 0) return;
  for (auto& [key, group] : groups_) {
    if (group.workload.namespace_name == namespace_name) change(group, key);
  }
}

void WorkloadGroups::namespaces_listed() {
  for (const std::string& name : std::set(namespaces_not_in_list_)) {
    remove_namespace({{"metadata", {{"name", name}}}});
  }
  are_namespaces_listed_ = true;
}

void WorkloadGroups::begin_pods() {
  pods_not_in_list_.clear();
  for (const auto& [uid, pod] : pods_) pods_not_in_list_.insert(uid);
}

void WorkloadGroups::see_pod(const Json& object) {
  const std::string uid = line_at(object, {"metadata", "uid"});
  pods_not_in_list_.erase(uid);
  auto pod = view_of_workload_pod(object, settings_.resource);
  if (!pod) return drop(uid);
  const auto known = pods_.find(uid);
  if (known != pods_.end() && known->second == *pod) return;
  put(*std::move(pod));
}

void WorkloadGroups::remove_pod(const Json& object) {
  const std::string uid = line_at(object, {"metadata", "uid"});
  pods_not_in_list_.erase(uid);
  drop(uid);
}

void WorkloadGroups::pods_listed() {
  for (const std::string& uid : std::set(pods_not_in_list_)) drop(uid);
  pods_not_in_list_.clear();
  are_pods_listed_ = true;
}

WorkloadGroups::Group& WorkloadGroups::group_of(const WorkloadPod& pod) {
  Group& group = groups_[pod.workload.key()];
  group.workload = pod.workload;
  group.owner_api = pod.owner_api;
  return group;
}

// A condition that we have set is no change of the pod.
void WorkloadGroups::put(WorkloadPod pod) {
  const std::string uid = pod.uid;
  const auto known = pods_.find(uid);
  WorkloadPod former = known == pods_.end() ? WorkloadPod() : known->second;
  former.condition = pod.condition;
  const bool is_same = known != pods_.end() && former == pod;
  pods_[uid] = pod;
  if (!counts(pod)) return;
  const std::string key = pod.workload.key();
  Group& group = group_of(pod);
  const bool is_cancelled = pod.condition && pod.condition->reason == kCancelledReason;
  if (is_cancelled && group.phase == Phase::kCollecting) {
    // From before a restart: the pods remember it longer than the queue does.
    group.phase = Phase::kCancelled;
    group.wanted = *pod.condition;
  }
  group.pods[uid] = std::move(pod);
  if (is_same) {
    dirty_.insert(key);
  } else {
    change(group, key);
  }
}

void WorkloadGroups::drop(const std::string& uid) {
  const auto known = pods_.find(uid);
  if (known == pods_.end()) return;
  const std::string key = known->second.workload.key();
  pods_.erase(known);
  const auto found = groups_.find(key);
  if (found == groups_.end() || found->second.pods.erase(uid) == 0) return;
  change(found->second, key);
}

void WorkloadGroups::change(Group& group, const std::string& key) {
  group.is_changed = true;
  if (group.phase == Phase::kRefused) group.try_again_at = {};
  dirty_.insert(key);
  changed_keys_.insert(key);
}

void WorkloadGroups::owner_seen(const std::string& key, const std::optional<OwnerFacts>& facts) {
  const auto found = groups_.find(key);
  if (found == groups_.end()) return;
  found->second.is_owner_asked = false;
  found->second.is_owner_known = true;
  found->second.owner = facts;
  dirty_.insert(key);
}

void WorkloadGroups::tell(const WorkloadNews& news) {
  const auto found = groups_.find(news.key);
  const auto workload = workload_of_key(news.key);
  const bool is_live =
      news.state == WorkloadNews::State::kWaiting || news.state == WorkloadNews::State::kActive;
  if (found == groups_.end() && (!is_live || !workload)) return;
  Group& group = groups_[news.key];
  if (found == groups_.end()) group.workload = *workload;
  dirty_.insert(news.key);
  group.refusals = news.state == WorkloadNews::State::kRefused ? group.refusals + 1 : 0;
  switch (news.state) {
    case WorkloadNews::State::kRefused:
      group.phase = Phase::kRefused;
      group.try_again_at = {};
      group.wanted = not_admitted(kRefusedReason, news.text);
      break;
    case WorkloadNews::State::kWaiting:
      if (group.phase == Phase::kActive) change(group, news.key);  // it was taken back
      group.phase = Phase::kWaiting;
      group.wanted = not_admitted(news.reason, news.text);
      break;
    case WorkloadNews::State::kActive:
      group.phase = Phase::kActive;
      group.wanted = not_admitted("Starting", news.text);
      break;
    case WorkloadNews::State::kEnded:
      group.phase = Phase::kCollecting;
      group.is_withdrawn = false;
      group.is_owner_known = false;  // a part of its pods may have done their work
      change(group, news.key);
      break;
    case WorkloadNews::State::kCancelled:
      group.phase = Phase::kCancelled;
      group.wanted = cancelled_condition(news.text);
      break;
  }
}

}  // namespace gpu_platform::execution
