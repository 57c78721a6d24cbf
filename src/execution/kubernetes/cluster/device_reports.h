#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "execution/kubernetes/cluster/device_pools.h"

// What kubelets say of the health of the devices that pods have (KEP-4680, of DRA since Kubernetes
// 1.34, feature gate ResourceHealthStatus): status.containerStatuses[].allocatedResourcesStatus.
// Pure. Thread: one owner.

namespace gpu_platform::execution {

struct DeviceReport {
  // The device as the kubelet names it: its first CDI name ("k8s.gpu.nvidia.com/claim=UID-gpu-0"),
  // or "DRIVER/POOL/DEVICE".
  std::string resource;
  bool is_healthy = false;
  friend bool operator==(const DeviceReport&, const DeviceReport&) = default;
};

// What is said of the devices of a pod.
struct PodReports {
  std::string node;
  std::vector<DeviceReport> devices;
  friend bool operator==(const PodReports&, const PodReports&) = default;
};

// Nothing if the pod is on no node, is over, or has no device of which Healthy or Unhealthy is
// said: Unknown says nothing.
std::optional<PodReports> reports_of_pod(const nlohmann::json& pod);

// Returns whether the kubelet's name is that of this device.
bool names_device(std::string_view resource, const Device& device);

class DeviceReports {
 public:
  // Of the pod "namespace/name"; nothing: no more is said. Both return the nodes of which something
  // else is said now.
  std::set<std::string> put(const std::string& pod, std::optional<PodReports> reports);
  std::set<std::string> remove(const std::string& pod) { return put(pod, std::nullopt); }

  // Returns by UUID whether a device of the node is healthy, as far as pods that have it say so. If
  // pods that share it disagree, it is not.
  std::map<std::string, bool> health_of(std::string_view node,
                                        const std::vector<const Device*>& devices) const;
  std::set<std::string> pods() const;

 private:
  std::map<std::string, PodReports, std::less<>> reports_;
  std::map<std::string, std::set<std::string>, std::less<>> pods_of_nodes_;
};

}  // namespace gpu_platform::execution
