#pragma once

#include <string>

#include "base/result.h"
#include "execution/engine.h"
#include "execution/kubernetes/cluster/device_configs.h"
#include "execution/kubernetes/pods/manifests.h"
#include "execution/kubernetes/pods/pod_attempts.h"
#include "kubernetes/client.h"

// The requests of the calls that PodAttempts asks for. Pure.

namespace gpu_platform::execution {

// What a call is made from.
struct CallContext {
  const StartOrder* order = nullptr;  // null for what the core does not know
  const std::string* environment = nullptr;
  std::string pod_uid;
  std::vector<DeviceName> devices;         // of the rank, for kAllocate
  const DeviceConfigs* configs = nullptr;  // for kAllocate; null: not known
  std::uint64_t output_bytes = 0;          // at most so many of a pod's output; 0: all
};

// Errors are those of the manifests: what Kubernetes would not take.
base::Result<kubernetes::Request> request_of(const Call& call, const CallContext& context,
                                             const KubernetesSettings& settings);

// The path of a pod's output; `follows`: until the pod ends.
std::string output_path_of(const Call& call, std::uint64_t limit_bytes, bool follows);
// The path of the last lines of it, for a client that attaches.
std::string latest_output_path_of(const std::string& namespace_name, const std::string& pod);

}  // namespace gpu_platform::execution
