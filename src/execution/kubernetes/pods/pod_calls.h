#pragma once

#include "execution/kubernetes/cluster/cluster_view.h"
#include "execution/kubernetes/cluster/device_configs.h"
#include "execution/kubernetes/pods/call_requests.h"
#include "execution/kubernetes/pods/output_follower.h"
#include "execution/kubernetes/pods/output_spool.h"
#include "execution/kubernetes/pods/pod_attempts.h"
#include "execution/kubernetes/settings.h"
#include "kubernetes/client.h"

namespace gpu_platform::execution {

// Makes the calls that PodAttempts asks for: sends each as a request to the API server, and leads
// the answer back. Thread: the client's.
class PodCalls {
 public:
  // All outlive it.
  struct Parts {
    kubernetes::Client& client;
    const KubernetesSettings& settings;
    const ClusterView& view;
    DeviceConfigs& configs;
    const OutputSpool& spool;
    OutputFollower& output;
    PodAttempts& attempts;
  };
  explicit PodCalls(Parts parts) : parts_(parts) {}

  // The attempt always gets an answer, at once if the call cannot be made.
  void make(const Call& call);

 private:
  CallContext context_of(const Call& call) const;
  CallAnswer told_by(CallKind kind, const kubernetes::Answer& answer);

  const Parts parts_;
};

}  // namespace gpu_platform::execution
