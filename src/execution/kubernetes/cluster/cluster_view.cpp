#include "execution/kubernetes/cluster/cluster_view.h"

#include <algorithm>
#include <functional>

#include <nlohmann/json.hpp>

#include "execution/kubernetes/api_values.h"
#include "execution/kubernetes/job_namespace.h"

namespace gpu_platform::execution {

namespace {

using Json = nlohmann::json;
using Kind = ClusterView::Kind;

// More than any machine has; sums of what nodes have stay far from overflow.
constexpr std::int64_t kMaxOthersCpus = 1'000'000;
constexpr std::int64_t kMaxOthersMemory = std::int64_t{1} << 50;
constexpr std::int64_t kMaxOthersGpus = 1'000'000;
// Kept in the evidence of GPUs, and found there by a later daemon.
constexpr const char* kUnhealthy = "DeviceHealth: the GPU is unhealthy, as its driver says";
constexpr std::string_view kNoNode = "the cluster does not have this node";

std::size_t index_of(Kind kind) {
  return static_cast<std::size_t>(kind);
}

bool has_namespace(Kind kind) {
  return kind != Kind::kNode && kind != Kind::kSlice && kind != Kind::kTaintRule;
}

std::string object_key(Kind kind, const Json& object) {
  return has_namespace(kind) ? key_of(object) : line_at(object, {"metadata", "name"});
}

// "GpuMemWatch" of "GpuMemWatch: EccError".
std::string_view name_of_fault(std::string_view text) {
  return text.substr(0, text.find(':'));
}

template <class Sum>
std::int64_t bounded(Sum sum, std::int64_t most) {
  return sum > most ? most : static_cast<std::int64_t>(sum);
}

}  // namespace

ClusterView::ClusterView(KubernetesSettings settings)
    : settings_(std::move(settings)), pools_(settings_.driver) {
  if (settings_.devices != DeviceMode::kCounts) return;
  is_listed_.at(index_of(Kind::kSlice)) = true;
  is_listed_.at(index_of(Kind::kClaim)) = true;
  is_listed_.at(index_of(Kind::kTaintRule)) = true;
}

void ClusterView::begin_list(Kind kind) {
  unseen_.at(index_of(kind)) = keys_of(kind);
}

void ClusterView::end_list(Kind kind) {
  std::optional<std::set<std::string>>& unseen = unseen_.at(index_of(kind));
  if (!unseen) return;
  for (const std::string& key : *unseen) remove_by_key(kind, key);
  unseen.reset();
  is_listed_.at(index_of(kind)) = true;
}

std::set<std::string> ClusterView::keys_of(Kind kind) const {
  if (kind == Kind::kSlice) return pools_.slice_names();
  if (kind == Kind::kClaim) return claims_.keys();
  if (kind == Kind::kTaintRule) return rules_.names();
  std::set<std::string> keys;
  if (kind == Kind::kNode) {
    for (const auto& [name, node] : nodes_) {
      if (node.facts) keys.insert(name);
    }
  } else {
    for (const auto& [key, pod] : others_) {
      if (pod.kind == kind) keys.insert(key);
    }
  }
  if (kind == Kind::kLabelledPod) keys.merge(reports_.pods());
  return keys;
}

void ClusterView::put(Kind kind, const Json& object) {
  if (line_at(object, {"metadata", "name"}).empty()) return;
  if (auto& unseen = unseen_.at(index_of(kind))) unseen->erase(object_key(kind, object));
  switch (kind) {
    case Kind::kNode:
      return put_node(object);
    case Kind::kSlice:
      return changed_.merge(pools_.put(object));
    case Kind::kClaim:
      return put_claim(object);
    case Kind::kTaintRule:
      return put_rule(object);
    case Kind::kOtherPod:
    case Kind::kLabelledPod:
      see_reports(kind, object);
      return put_pod(kind, object);
  }
}

void ClusterView::remove(Kind kind, const Json& object) {
  remove_by_key(kind, object_key(kind, object));
}

void ClusterView::remove_by_key(Kind kind, const std::string& key) {
  switch (kind) {
    case Kind::kNode:
      return remove_node(key, "the cluster does not have this node any more");
    case Kind::kSlice:
      return changed_.merge(pools_.remove(key));
    case Kind::kClaim:
      return mark_devices(claims_.remove(key));
    case Kind::kTaintRule:
      return remove_rule(key);
    case Kind::kLabelledPod:
      changed_.merge(reports_.remove(key));
      return remove_pod(kind, key);
    case Kind::kOtherPod:
      return remove_pod(kind, key);
  }
}

void ClusterView::put_node(const Json& object) {
  const std::string name = line_at(object, {"metadata", "name"});
  std::optional<NodeFacts> facts = facts_of_node(object, settings_);
  if (!facts) return remove_node(name, "the node does not have the labels of ours any more");
  Node& node = nodes_[name];
  if (node.facts == facts) return;
  node.facts = std::move(facts);
  changed_.insert(name);
}

void ClusterView::remove_node(const std::string& name, std::string_view cause) {
  const auto found = nodes_.find(name);
  if (found == nodes_.end() || !found->second.facts) return;
  found->second.facts.reset();
  found->second.gone_cause = cause;
  changed_.insert(name);
}

// A pod whose label is taken away is told of by the other list, and says no more here.
void ClusterView::see_reports(Kind kind, const Json& object) {
  if (settings_.devices == DeviceMode::kCounts) return;
  const bool is_ours = kind == Kind::kLabelledPod && is_of_platform(object, settings_);
  changed_.merge(reports_.put(key_of(object), is_ours ? reports_of_pod(object) : std::nullopt));
}

void ClusterView::put_pod(Kind kind, const Json& object) {
  const std::string key = key_of(object);
  if (is_of_platform(object, settings_)) return remove_pod(kind, key);
  const std::optional<OtherPod> pod = view_of_other_pod(object, settings_.resource);
  if (!pod) return remove_pod(kind, key);
  if (const auto old = others_.find(key); old != others_.end()) {
    old->second.kind = kind;
    if (old->second.pod == *pod) return;
    remove_pod(kind, key);
  }
  Node& node = nodes_[pod->node];
  node.others_milli_cpus += pod->milli_cpus;
  node.others_memory += pod->memory.value();
  node.others_gpus += pod->counted_gpus;
  ++node.others;
  changed_.insert(pod->node);
  others_.emplace(key, OtherPodOfKind{*pod, kind});
}

void ClusterView::remove_pod(Kind kind, const std::string& key) {
  const auto found = others_.find(key);
  if (found == others_.end() || found->second.kind != kind) return;
  const OtherPod& pod = found->second.pod;
  Node& node = nodes_[pod.node];
  node.others_milli_cpus -= pod.milli_cpus;
  node.others_memory -= pod.memory.value();
  node.others_gpus -= pod.counted_gpus;
  --node.others;
  changed_.insert(pod.node);
  others_.erase(found);
}

void ClusterView::put_claim(const Json& object) {
  std::optional<DeviceClaim> claim;
  if (!is_of_platform(object, settings_)) claim = view_of_claim(object);
  mark_devices(claim ? claims_.put(std::move(*claim)) : claims_.remove(key_of(object)));
}

void ClusterView::mark_devices(const std::set<DeviceName>& devices) {
  for (const DeviceName& device : devices) {
    if (std::string node = pools_.node_of(device); !node.empty()) changed_.insert(std::move(node));
  }
}

void ClusterView::put_rule(const Json& object) {
  std::optional<TaintRule> rule = view_of_taint_rule(object);
  if (!rule) return remove_rule(line_at(object, {"metadata", "name"}));
  const TaintRule* old = rules_.find(rule->name);
  if (old != nullptr && *old == *rule) return;
  if (old != nullptr) mark_selected(*old);
  mark_selected(*rule);
  rules_.put(*std::move(rule));
}

void ClusterView::remove_rule(const std::string& name) {
  const TaintRule* old = rules_.find(name);
  if (old == nullptr) return;
  mark_selected(*old);
  rules_.remove(name);
}

// Nodes that may have a device which the rule selects.
void ClusterView::mark_selected(const TaintRule& rule) {
  if (rule.driver.value_or(settings_.driver) == settings_.driver) {
    changed_.merge(pools_.nodes_of(rule.pool));
  }
}

void ClusterView::expect(std::string_view node) {
  Node& known = nodes_[std::string(node)];
  known.is_expected = true;
  if (known.gone_cause.empty()) known.gone_cause = kNoNode;
  changed_.insert(std::string(node));
}

void ClusterView::adopt_fault(const EvidenceObserved& lasting) {
  nodes_[lasting.node_name].adopted.emplace(lasting.gpu_uuid, lasting.evidence.text);
  changed_.insert(lasting.node_name);
}

std::vector<ClusterObservation> ClusterView::take_changes(base::Instant now) {
  std::vector<ClusterObservation> changes;
  if (!std::ranges::all_of(is_listed_, std::identity{})) return changes;
  for (const auto& [due, name] : due_) {
    if (due > now) break;
    changed_.insert(name);
  }
  for (const std::string& name : std::exchange(changed_, {})) {
    const auto found = nodes_.find(name);
    if (found == nodes_.end()) continue;
    Node& node = found->second;
    if (std::string cause = lost_cause(name, node, now); !cause.empty()) {
      tell_lost(name, node, std::move(cause), changes);
    } else {
      tell(name, node, changes);
    }
    const bool has_faults = !node.faults.empty() || !node.adopted.empty();
    if (!node.facts && node.others == 0 && !has_faults) nodes_.erase(found);
  }
  return changes;
}

base::Instant ClusterView::next_due() const {
  return due_.empty() ? base::Instant() : due_.begin()->first;
}

void ClusterView::set_due(const std::string& name, Node& node, base::Instant due) {
  if (node.due.is_set()) due_.erase({node.due, name});
  node.due = due;
  if (due.is_set()) due_.insert({due, name});
}

// Why the node counts as lost; empty: it does not.
std::string ClusterView::lost_cause(const std::string& name, Node& node, base::Instant now) {
  set_due(name, node, {});
  const bool is_unreachable = node.facts && node.facts->is_unreachable;
  if (!is_unreachable) node.seen_unreachable = {};
  if (!node.facts) return node.gone_cause.empty() ? std::string(kNoNode) : node.gone_cause;
  if (!is_unreachable) return {};
  if (!node.seen_unreachable.is_set()) node.seen_unreachable = now;
  const base::Instant since = node.facts->unreachable_since;
  const bool is_told = since.is_set() && since <= node.seen_unreachable;
  const base::Instant due = (is_told ? since : node.seen_unreachable) + settings_.lost_after;
  if (now >= due) return node.facts->cause;
  set_due(name, node, due);
  return {};
}

void ClusterView::tell_lost(const std::string& name, Node& node, std::string cause,
                            std::vector<ClusterObservation>& changes) {
  const bool may_be_known = node.told.info || node.is_expected || node.facts;
  if (may_be_known && !node.told.is_lost)
    changes.emplace_back(NodeUnreachable{name, std::move(cause)});
  node.told = {};
  node.told.is_lost = may_be_known;
  node.is_expected = false;
}

void ClusterView::tell(const std::string& name, Node& node,
                       std::vector<ClusterObservation>& changes) {
  const NodeFacts& facts = *node.facts;
  const bool is_counted = settings_.devices == DeviceMode::kCounts;
  NodeGpus gpus = is_counted
                      ? gpus_of_counts(name, facts, bounded(node.others_gpus, kMaxOthersGpus))
                      : gpus_of_devices(pools_.devices_of(name), claims_, rules_);
  model::NodeInfo info;
  info.name = name;
  info.boot_id = facts.uid;
  info.cpus = facts.cpus;
  info.memory = facts.memory;
  info.driver_version = facts.driver_version.empty() ? gpus.driver_version : facts.driver_version;
  info.gpus = std::move(gpus.gpus);
  info.network = facts.network;
  info.engine = model::EngineKind::kKubernetes;
  info.capacity = facts.capacity;
  info.others_cpus =
      static_cast<std::uint32_t>(bounded((node.others_milli_cpus + 999) / 1000, kMaxOthersCpus));
  info.others_memory = base::Bytes(bounded(node.others_memory, kMaxOthersMemory));
  node.told.is_lost = false;
  node.is_expected = false;
  if (node.told.info != info) {
    node.told.info = info;
    changes.emplace_back(NodeObserved{std::move(info)});
  }
  TaintObserved taint{
      .node_name = name, .gpu_uuid = {}, .effect = facts.effect, .text = facts.cause};
  if (node.told.taint != taint) {
    node.told.taint = taint;
    changes.emplace_back(std::move(taint));
  }
  for (const auto& [uuid, text] : gpus.unavailable) {
    const auto told = node.told.gpus.find(uuid);
    if (told != node.told.gpus.end() && told->second == text) continue;
    TaintObserved seen{.node_name = name, .gpu_uuid = uuid, .text = text};
    if (!text.empty()) seen.effect = model::TaintEffect::kAvoided;
    changes.emplace_back(std::move(seen));
  }
  tell_faults(name, node, faults_of(name, node, gpus), changes);
  node.told.gpus = std::move(gpus.unavailable);
}

ClusterView::Faults ClusterView::faults_of(const std::string& name, Node& node,
                                           const NodeGpus& gpus) const {
  Faults faults(gpus.faults.begin(), gpus.faults.end());
  for (const std::string& text : node.facts->conditions) faults.emplace(std::string(), text);
  for (const auto& [uuid, text] : node.adopted) {
    if (text == kUnhealthy) node.unhealthy.insert(uuid);
  }
  for (const auto& [uuid, is_healthy] : reports_.health_of(name, pools_.devices_of(name))) {
    is_healthy ? (void)node.unhealthy.erase(uuid) : (void)node.unhealthy.insert(uuid);
  }
  std::erase_if(node.unhealthy, [&](const auto& uuid) { return !gpus.unavailable.contains(uuid); });
  for (const std::string& uuid : node.unhealthy) faults.emplace(uuid, kUnhealthy);
  return faults;
}

void ClusterView::tell_faults(const std::string& name, Node& node, Faults faults,
                              std::vector<ClusterObservation>& changes) {
  const auto tell_one = [&](const auto& fault, bool is_over) {
    EvidenceObserved seen{.node_name = name, .gpu_uuid = fault.first, .evidence = {}};
    seen.evidence.kind = model::EvidenceKind::kNodeCondition;
    seen.evidence.source = model::EvidenceSource::kCluster;
    seen.evidence.is_over = is_over;
    seen.evidence.text = fault.second;
    changes.emplace_back(std::move(seen));
  };
  for (const auto& fault : node.faults) {
    if (!faults.contains(fault)) tell_one(fault, true);
  }
  // One that lasts in other words is not over: the core knows it by its name.
  for (const auto& fault : std::exchange(node.adopted, {})) {
    const auto is_same = [&](const auto& each) {
      return each.first == fault.first && name_of_fault(each.second) == name_of_fault(fault.second);
    };
    if (std::ranges::none_of(faults, is_same)) tell_one(fault, true);
  }
  const bool is_other_machine = node.faults_uid != node.facts->uid;
  for (const auto& fault : faults) {
    if (is_other_machine || !node.faults.contains(fault)) tell_one(fault, false);
  }
  node.faults = std::move(faults);
  node.faults_uid = node.facts->uid;
}

void ClusterView::for_each_node(
    const std::function<void(const model::NodeInfo&, const Labels&)>& visit) const {
  for (const auto& [name, node] : nodes_) {
    if (node.told.info && node.facts) visit(*node.told.info, node.facts->labels);
  }
}

std::string ClusterView::host_name_of(std::string_view node) const {
  const auto found = nodes_.find(node);
  if (found == nodes_.end() || !found->second.facts) return std::string(node);
  const Labels& labels = found->second.facts->labels;
  const auto label = labels.find("kubernetes.io/hostname");
  return label == labels.end() ? std::string(node) : label->second;
}

std::optional<DeviceName> ClusterView::device_of(std::string_view node,
                                                 std::string_view gpu_uuid) const {
  if (settings_.devices == DeviceMode::kCounts || gpu_uuid.empty()) return std::nullopt;
  for (const Device* device : pools_.devices_of(node)) {
    if (device->uuid == gpu_uuid) return device->name;
  }
  return std::nullopt;
}

std::string ClusterView::boot_id_of(std::string_view node) const {
  const auto found = nodes_.find(node);
  return found != nodes_.end() && found->second.facts ? found->second.facts->uid : std::string();
}

std::size_t ClusterView::nodes() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      nodes_, [](const auto& entry) { return entry.second.facts.has_value(); }));
}

}  // namespace gpu_platform::execution
