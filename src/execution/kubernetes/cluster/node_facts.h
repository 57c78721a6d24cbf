#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "base/units.h"
#include "execution/engine.h"
#include "execution/kubernetes/settings.h"
#include "kubernetes/json_reader.h"
#include "model/capacity.h"
#include "model/network.h"

// What the platform keeps of a Node. Pure: from the JSON of the API to a small value.

namespace gpu_platform::execution {

struct NodeFacts {
  std::string uid;
  std::uint32_t cpus = 0;  // whole ones that pods may have
  base::Bytes memory;      // that pods may have
  std::string driver_version;
  // With DeviceMode::kCounts: the label of its GPUs, the memory of each, and how many there are and
  // may be given to pods.
  std::string gpu_product;
  base::Bytes gpu_memory;
  std::uint32_t counted_gpus = 0;
  std::uint32_t given_gpus = 0;
  model::NetworkPlace network;
  model::CapacityClass capacity = model::CapacityClass::kOnDemand;
  std::map<std::string, std::string> labels;  // as they are
  std::optional<model::TaintEffect> effect;   // of the cluster's taint; none: it sets none
  std::string cause;                          // of the taint
  // Conditions of health tools that tell of trouble, "TYPE: REASON": a judge says what each means.
  // Their messages change while they last, so they are not in it.
  std::set<std::string> conditions;
  // Its kubelet has not been heard of, since this time; the time is unset if it is not told.
  bool is_unreachable = false;
  base::Instant unreachable_since;

  friend bool operator==(const NodeFacts&, const NodeFacts&) = default;
};

// Nothing if the Node does not have the labels of settings.node_selector.
//
// The capacity class is that of the first of these labels that the Node has: the site's own
// (settings.capacity_label), Karpenter's, GKE's, EKS', AKS'. Without any of them, or with a value
// that is none of their classes, the Node is on-demand.
//
// The service is kOffline while the Node is not ready, has a taint NoExecute that our pods do not
// tolerate, or is found to be faulty by a health tool: node-problem-detector's conditions, those of
// NVSentinel ("SysLogs…", "Gpu…") and its label. It is kDraining while it is cordoned, about to be
// deleted, or has such a taint NoSchedule.
//
// What it reads of a Node is fields_of_nodes().
std::optional<NodeFacts> facts_of_node(const nlohmann::json& node,
                                       const KubernetesSettings& settings);
kubernetes::JsonFields fields_of_nodes();

// Returns whether a condition with this name and status ("True", "False", "Unknown") tells of
// trouble that a health tool has found. Kubernetes' own conditions do not, nor those that the
// node's service has already (KernelDeadlock, …). "…Ready", "…Healthy" and the like mean trouble
// when they are False, all others when they are True; Unknown says nothing.
bool tells_of_trouble(std::string_view type, std::string_view status);

// Returns whether the text of a device's taint speaks of a fault of GPUs or their links. That
// something is kept for maintenance, or by its users, is none.
bool speaks_of_gpu_fault(std::string_view text);

}  // namespace gpu_platform::execution
