#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "execution/kubernetes/cluster/device_claims.h"
#include "execution/kubernetes/cluster/device_pools.h"
#include "execution/kubernetes/cluster/device_taint_rules.h"
#include "execution/kubernetes/cluster/node_facts.h"
#include "model/node.h"

// The GPUs of one node and why some are not available to the platform. Pure.

namespace gpu_platform::execution {

struct NodeGpus {
  std::vector<model::GpuInfo> gpus;  // by index
  std::map<std::string, std::string>
      unavailable;             // of each by UUID; empty text: it is ours to give
  std::string driver_version;  // empty: not told
  // Taints of devices that speak of faults, with the UUID of each.
  std::vector<std::pair<std::string, std::string>> faults;
};

// From the devices that a driver publishes: by PCI bus, then by device name. A GPU is not ours
// while a device taint, its own or that of a rule, keeps pods away, or while a claim of others
// holds it, a part of it, or that of which it is a part.
NodeGpus gpus_of_devices(const std::vector<const Device*>& devices, const DeviceClaims& claims,
                         const DeviceTaintRules& rules);

// From the counts of a device plugin: "NODE/0", "NODE/1", … Pods of others are taken to have the
// last ones, and those that the plugin does not give are the last of all.
NodeGpus gpus_of_counts(std::string_view node, const NodeFacts& facts, std::int64_t used_by_others);

}  // namespace gpu_platform::execution
