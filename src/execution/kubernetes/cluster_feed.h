#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "execution/kubernetes/cluster/cluster_view.h"
#include "execution/kubernetes/cluster/device_configs.h"
#include "execution/kubernetes/pods/pod_attempts.h"
#include "execution/kubernetes/pods/pod_view.h"
#include "execution/kubernetes/settings.h"
#include "execution/kubernetes/workloads/attempts.h"
#include "kubernetes/reflector.h"

namespace gpu_platform::execution {

// Says which objects of a cluster the engine follows, and leads each of them to the parts that
// decide by it: nodes, devices and pods of others to the view of the cluster, pods and claims of
// jobs to their attempts. Only what lies in a namespace of jobs is a job's, because users may write
// the platform's labels, too. Asks nothing and keeps no objects. Thread: one owner.
class ClusterFeed {
 public:
  // They outlive it, and so do the settings.
  struct Parts {
    ClusterView& view;
    DeviceConfigs& configs;
    PodAttempts& attempts;
    WorkloadAttempts& workload_attempts;
  };
  ClusterFeed(const KubernetesSettings& settings, Parts parts);

  // The objects to follow, with their handlers. The handlers live no longer than the feed.
  using Followed = std::pair<kubernetes::Followed, kubernetes::FollowHandlers>;
  std::vector<Followed> followed();
  // The handlers of DeviceTaintRules; nothing where the platform knows no single devices.
  std::optional<kubernetes::FollowHandlers> taint_rules();
  // The first lists of everything are complete: what attempts did not see in them is gone. A list
  // of pods that ends earlier decides nothing.
  void all_listed();

 private:
  kubernetes::FollowHandlers of_view(ClusterView::Kind kind);
  kubernetes::FollowHandlers of_classes();
  kubernetes::FollowHandlers of_claims();
  kubernetes::FollowHandlers of_pods();
  void see_claim(const nlohmann::json& object, bool is_there);
  std::optional<PodView> pod_of_a_job(const nlohmann::json& object) const;

  const KubernetesSettings& settings_;
  const Parts parts_;
  std::set<std::string, std::less<>> seen_claims_;  // of jobs of this platform, by "namespace/name"
  bool is_all_listed_ = false;
};

}  // namespace gpu_platform::execution
