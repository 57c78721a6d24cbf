#include "execution/kubernetes/cluster/node_facts.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/letters.h"
#include "execution/kubernetes/api_values.h"

namespace gpu_platform::execution {

namespace {

using Json = nlohmann::json;

// More than any machine has; sums of what nodes have stay far from overflow.
constexpr std::int64_t kMaxNodeCpus = 1'000'000;
constexpr std::int64_t kMaxNodeMemory = std::int64_t{1} << 50;
constexpr std::int64_t kMaxNodeGpus = 256;

struct Causes {
  std::vector<std::string> offline;
  std::vector<std::string> draining;
};

std::string_view label(const Json& node, std::string_view name) {
  return text_at(node, {"metadata", "labels", name});
}

bool is_ours(const Json& node, const KubernetesSettings& settings) {
  return std::ranges::all_of(settings.node_selector, [&](const auto& wanted) {
    const Json& value = at(node, {"metadata", "labels", wanted.first});
    return value.is_string() && value == wanted.second;
  });
}

std::int64_t amount(const Json& node, std::string_view list, std::string_view resource) {
  return parse_quantity(text_at(node, {"status", list, resource})).value_or(0);
}

// Rounded down: a part of a CPU is none to give.
std::uint32_t whole_cpus(const Json& node) {
  const std::int64_t milli =
      parse_quantity_milli(text_at(node, {"status", "allocatable", "cpu"})).value_or(0);
  return static_cast<std::uint32_t>(std::min(milli / 1000, kMaxNodeCpus));
}

std::uint32_t gpu_count(const Json& node, std::string_view list, std::string_view resource) {
  return static_cast<std::uint32_t>(std::min(amount(node, list, resource), kMaxNodeGpus));
}

std::string reason_of(const Json& condition) {
  return printable_line(text_at(condition, {"reason"}), text_at(condition, {"message"}));
}

// Conditions that say of a whole node that nothing should run there.
constexpr std::array<std::string_view, 4> kOfNodes = {
    "KernelDeadlock", "ReadonlyFilesystem", "ContainerRuntimeUnhealthy", "KubeletUnhealthy"};

bool is_one_of(std::string_view type, std::span<const std::string_view> types) {
  return std::ranges::find(types, type) != types.end();
}

// Conditions by whose name "True" is good.
bool is_good_when_true(std::string_view type) {
  constexpr std::array<std::string_view, 11> kEnds = {
      "Ready",  "Healthy",   "Available",   "Present", "Active", "Enabled",
      "Online", "Succeeded", "Initialized", "Valid",   "OK"};
  if (type.ends_with("NotReady") || type.ends_with("NotAvailable")) return false;
  return std::ranges::any_of(kEnds, [&](std::string_view end) { return type.ends_with(end); });
}

// A condition of a health tool that takes the node out while it is "True". That NVSentinel cannot
// reach DCGM is no fault of the node.
bool takes_node_out(std::string_view type) {
  if (type == "GpuDcgmConnectivityFailure" || is_good_when_true(type)) return false;
  return is_one_of(type, kOfNodes) || type.starts_with("SysLogs") || type.starts_with("Gpu");
}

void read_conditions(NodeFacts& facts, Causes& causes, const Json& node) {
  bool is_ready = false;
  std::string not_ready = "the kubelet has not reported that it is ready";
  for (const Json& condition : list_at(node, {"status", "conditions"})) {
    const std::string_view type = text_at(condition, {"type"});
    const std::string_view status = text_at(condition, {"status"});
    if (type == "Ready") {
      is_ready = status == "True";
      facts.is_unreachable = status == "Unknown";
      if (std::string reason = reason_of(condition); !reason.empty()) not_ready = reason;
      if (facts.is_unreachable) {
        facts.unreachable_since = parse_time(text_at(condition, {"lastTransitionTime"}));
      }
      continue;
    }
    if (tells_of_trouble(type, status)) {
      facts.conditions.insert(printable_line(type, text_at(condition, {"reason"})));
    }
    if (status == "True" && takes_node_out(type)) {
      causes.offline.push_back(printable_line(type, reason_of(condition)));
    }
  }
  if (!is_ready) causes.offline.insert(causes.offline.begin(), not_ready);
}

// NVSentinel names the stage that it is in; after the last one the node is whole again.
void read_sentinel(Causes& causes, const Json& node) {
  const std::string_view state = label(node, "dgxc.nvidia.com/nvsentinel-state");
  if (state.empty() || state == "remediation-succeeded") return;
  causes.offline.push_back(printable_line(fmt::format("nvsentinel-state {}", state)));
}

bool is_tolerated(std::string_view key, std::string_view effect,
                  const KubernetesSettings& settings) {
  const bool is_of_readiness =
      key == "node.kubernetes.io/not-ready" || key == "node.kubernetes.io/unreachable";
  if (is_of_readiness && effect == "NoExecute") return true;  // for a while; the condition decides
  return std::ranges::find(settings.tolerated_taints, key) != settings.tolerated_taints.end();
}

void read_taints(Causes& causes, const Json& node, const KubernetesSettings& settings) {
  for (const Json& taint : list_at(node, {"spec", "taints"})) {
    const std::string_view key = text_at(taint, {"key"});
    const std::string_view effect = text_at(taint, {"effect"});
    if (is_tolerated(key, effect, settings)) continue;
    if (effect == "NoExecute") causes.offline.push_back(taint_text(taint));
    if (effect == "NoSchedule") causes.draining.push_back(taint_text(taint));
  }
}

void set_effect(NodeFacts& facts, const Causes& causes) {
  if (!causes.offline.empty()) {
    facts.effect = model::TaintEffect::kOut;
    facts.cause = printable_line(fmt::format("{}", fmt::join(causes.offline, "; ")));
  } else if (!causes.draining.empty()) {
    facts.effect = model::TaintEffect::kNoNewWork;
    facts.cause = printable_line(fmt::format("{}", fmt::join(causes.draining, "; ")));
  }
}

// "ON_DEMAND", "spot", "true" of a label that says whether the Node is spot; empty: nothing is
// said.
std::optional<model::CapacityClass> class_of_value(std::string_view value) {
  if (value.empty()) return std::nullopt;
  const std::string word = base::to_lower(value);
  if (word == "true" || word == "preemptible") return model::CapacityClass::kSpot;
  if (word == "capacity_block" || word == "reservation") return model::CapacityClass::kReserved;
  return model::parse_capacity_class(word).value_or(model::CapacityClass::kOnDemand);
}

model::CapacityClass capacity_of(const Json& node, const KubernetesSettings& settings) {
  const std::array<std::string_view, 7> labels = {settings.capacity_label,
                                                  "karpenter.sh/capacity-type",
                                                  "cloud.google.com/gke-spot",
                                                  "cloud.google.com/gke-preemptible",
                                                  "cloud.google.com/gke-provisioning",
                                                  "eks.amazonaws.com/capacityType",
                                                  "kubernetes.azure.com/scalesetpriority"};
  for (const std::string_view name : labels) {
    if (name.empty()) continue;
    if (const auto found = class_of_value(label(node, name))) return *found;
  }
  return model::CapacityClass::kOnDemand;
}

// The label of GPU feature discovery counts MiB.
base::Bytes labelled_memory(const Json& node) {
  const std::int64_t mib = parse_quantity(label(node, "nvidia.com/gpu.memory")).value_or(0);
  return base::kMiB * std::min(mib, kMaxNodeMemory / base::kMiB.value());
}

}  // namespace

bool tells_of_trouble(std::string_view type, std::string_view status) {
  // The last two are marks of distributions, and good when they are True.
  constexpr std::array<std::string_view, 8> kKubernetes = {
      "Ready",     "MemoryPressure",     "DiskPressure", "PIDPressure",
      "OutOfDisk", "NetworkUnavailable", "EtcdIsVoter",  "SufficientIP"};
  if (type.empty() || is_one_of(type, kKubernetes) || is_one_of(type, kOfNodes)) return false;
  return status == (is_good_when_true(type) ? "False" : "True");
}

bool speaks_of_gpu_fault(std::string_view text) {
  constexpr std::array<std::string_view, 10> kWords = {
      "xid", "nvlink", "nvswitch", "gpuunhealthy", "unhealthy",
      "ecc", "remap",  "thermal",  "fallenoff",    "gpulost"};
  const std::string lower = base::to_lower(text);
  // A condition of NVSentinel names the part: "GpuMemWatch".
  if (lower.starts_with("gpu")) return !lower.starts_with("gpuready");
  // The kubelet's and the container engine's health is no fault of a GPU.
  if (lower == "kubeletunhealthy" || lower == "containerruntimeunhealthy") return false;
  return std::ranges::any_of(
      kWords, [&](std::string_view word) { return lower.find(word) != std::string::npos; });
}

kubernetes::JsonFields fields_of_nodes() {
  return {
      "metadata.name",    "metadata.uid",       "metadata.labels",    "metadata.deletionTimestamp",
      "spec.taints",      "spec.unschedulable", "status.allocatable", "status.capacity",
      "status.conditions"};
}

std::optional<NodeFacts> facts_of_node(const Json& node, const KubernetesSettings& settings) {
  if (!is_ours(node, settings)) return std::nullopt;
  NodeFacts facts;
  facts.uid = line_at(node, {"metadata", "uid"});
  facts.cpus = whole_cpus(node);
  facts.memory = base::Bytes(std::min(amount(node, "allocatable", "memory"), kMaxNodeMemory));
  facts.driver_version = printable_line(label(node, "nvidia.com/cuda.driver-version.full"));
  facts.gpu_product = printable_line(label(node, "nvidia.com/gpu.product"));
  facts.gpu_memory = labelled_memory(node);
  facts.counted_gpus = gpu_count(node, "capacity", settings.resource);
  facts.given_gpus = gpu_count(node, "allocatable", settings.resource);
  facts.network.zone = printable_line(label(node, "topology.kubernetes.io/zone"));
  facts.network.rack = printable_line(label(node, settings.rack_label));
  facts.capacity = capacity_of(node, settings);
  facts.network.domain = printable_line(label(node, "nvidia.com/gpu.clique"));
  for (const auto& [name, value] : map_at(node, {"metadata", "labels"}).items()) {
    if (value.is_string()) facts.labels[name] = value.get<std::string>();
  }
  Causes causes;
  read_conditions(facts, causes, node);
  read_sentinel(causes, node);
  if (flag_at(node, {"spec", "unschedulable"})) causes.draining.emplace_back("cordoned");
  if (at(node, {"metadata", "deletionTimestamp"}).is_string()) {
    causes.draining.emplace_back("being deleted");
  }
  read_taints(causes, node, settings);
  set_effect(facts, causes);
  return facts;
}

}  // namespace gpu_platform::execution
