#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "base/units.h"
#include "execution/kubernetes/cluster/preflight.h"
#include "execution/kubernetes/lease/lease.h"
#include "execution/kubernetes/settings.h"
#include "execution/kubernetes/workloads/port.h"
#include "kubernetes/kubeconfig.h"

namespace gpu_platform::execution {

struct KubernetesEngineOptions {
  kubernetes::ClusterAccess access;
  KubernetesSettings settings;
  LeaseTerms lease;
  ClusterHistory history = ClusterHistory::kKnown;
  std::string output_folder;             // of what jobs print; made if it is not there
  std::uint64_t output_limit_bytes = 0;  // of all that an attempt prints so much is kept; 0: all
  base::Duration open_timeout = base::seconds(30);  // of open()
  std::function<bool()> must_end;                   // open() waits no more; may be empty
  // The engine has found that it must not go on: another controller took the lease. Called once, on
  // the engine's thread.
  std::function<void(const base::Error&)> on_fatal;
  // Troubles and their ends, one line each.
  std::function<void(const std::string& line)> warn;
  WorkloadPort* workload_port =
      nullptr;  // where workloads of others are submitted; needed to admit any
};

}  // namespace gpu_platform::execution
