#pragma once

#include <memory>

#include "execution/engine.h"
#include "execution/kubernetes/pods/pod_view.h"
#include "execution/kubernetes/settings.h"
#include "model/ids.h"
#include "model/job.h"
#include "model/job_spec.h"

// One attempt of a job with one pod, for tests: its order, and its pod as it is seen.

namespace gpu_platform::execution {

inline constexpr model::AttemptId kOne{model::JobId(1), 1};

inline KubernetesSettings settings_of_one() {
  KubernetesSettings settings;
  settings.cluster = "test";
  settings.namespace_name = "jobs";
  return settings;
}

inline StartOrder order_of_one(model::JobSpec spec = {}) {
  spec.image = "img";
  StartOrder order;
  order.attempt = kOne;
  order.boot_id = "boot-1";
  order.time_limit = base::seconds(60);
  LaunchNode node;
  node.node_name = "node-1";
  node.cpus = 1;
  order.nodes.push_back(node);
  order.spec = std::make_shared<const model::JobSpec>(std::move(spec));
  return order;
}

// It has a node, and does not run yet.
inline PodView pod_of_one() {
  PodView pod;
  pod.name = "gp-test-1-1-0";
  pod.namespace_name = "jobs";
  pod.uid = "uid-1";
  pod.attempt = kOne;
  pod.node = "node-1";
  pod.finalizer_at = 0;
  return pod;
}

inline PodView running_pod_of_one(base::Instant since) {
  PodView pod = pod_of_one();
  pod.phase = PodPhase::kRunning;
  pod.started_at = since;
  return pod;
}

inline PodView ended_pod_of_one(base::Instant since, base::Duration time) {
  PodView pod = pod_of_one();
  pod.phase = PodPhase::kSucceeded;
  pod.started_at = since;
  pod.finished_at = since + time;
  pod.exit_code = 0;
  return pod;
}

}  // namespace gpu_platform::execution
