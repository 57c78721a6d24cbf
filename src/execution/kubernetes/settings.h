#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"

namespace gpu_platform::execution {

// What writes which GPUs a pod gets (docs/kubernetes.md has what is promised where).
enum class DeviceMode : std::uint8_t {
  kPinned,  // P1: a claim pinned to the devices by their UUIDs; kube-scheduler allocates them
  kOwned,   // P2: we write the allocation, the reservation and the binding; the pools are ours
  kCounts,  // no DRA: `nvidia.com/gpu: n`; the kubelet chooses the devices
};

// What the site says of its cluster (config keys engines.kubernetes.*).
struct KubernetesSettings {
  std::string cluster;  // names this platform's objects; a DNS label of at most 24 characters
  std::string namespace_name;  // of all jobs' pods; "{team}" stands for the job's team
  std::vector<std::string> image_pull_secrets;
  std::vector<std::pair<std::string, std::string>>
      node_selector;  // labels of the nodes that are ours
  DeviceMode devices = DeviceMode::kPinned;
  std::string driver = "gpu.nvidia.com";            // of ResourceSlices
  std::string device_class = "gpu.nvidia.com";      // that claims name
  std::string mig_device_class = "mig.nvidia.com";  // the same for MIG instances
  std::string resource = "nvidia.com/gpu";          // of kCounts
  std::string priority_class;                       // of pods; empty: none
  // Keys; pods tolerate them. Clouds keep pods off spot nodes by theirs, and the platform does so
  // by the capacity class that a job accepts.
  std::vector<std::string> tolerated_taints = {
      "nvidia.com/gpu", "kubernetes.azure.com/scalesetpriority", "cloud.google.com/gke-spot"};
  std::string rack_label = "topology.kubernetes.io/rack";  // of nodes: names their rack
  std::string
      capacity_label;        // of nodes: their capacity class, before the clouds' own; empty: none
  bool runs_as_user = true;  // pods have the uid and gid of their job's user; else the image's user
  // A start is taken back if a pod of it has no node after this time; zero: never.
  base::Duration start_timeout = base::minutes(10);
  base::Duration lost_after = base::minutes(5);  // a node that is unreachable for so long is lost
  // Workloads of others (workloads/pod.h).
  bool admits_workloads = false;
  std::string workloads_user;  // of namespaces that name none; empty: none
  // A workload is complete, or over, when no new pod of it came for so long; where its owner says
  // how many there will be, that counts.
  base::Duration workload_settles = base::seconds(5);
};

}  // namespace gpu_platform::execution
