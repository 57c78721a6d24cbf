#pragma once

#include <string_view>

#include "base/units.h"
#include "execution/kubernetes/settings.h"
#include "execution/kubernetes/workloads/attempts.h"
#include "execution/kubernetes/workloads/groups.h"
#include "kubernetes/client.h"

// What is asked of an API server for the workloads of others. Pure.

namespace gpu_platform::execution {

// One JSON patch takes our gate away, chooses the node and sets the labels, or does nothing: if the
// pod is another one, or the gate stands at another place by now.
kubernetes::Request request_of(const WorkloadCall& call, const KubernetesSettings& settings);

// Reads the owner, sets a pod's condition, or makes an event about the pod.
kubernetes::Request request_of(const GroupCall& call, base::Instant now);

}  // namespace gpu_platform::execution
