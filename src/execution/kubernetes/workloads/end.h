#pragma once

#include <optional>
#include <span>

#include "execution/kubernetes/pods/attempt_end.h"
#include "execution/kubernetes/workloads/owner.h"

namespace gpu_platform::execution {

// The end of an attempt whose pods others have made; `ranks`: the last pod of each slot. An order
// of ours decides the reason. What the cluster took away, or gave no node, is PREEMPTED. Otherwise
// the pods that came to an end of their own decide: of the one that failed first, or 0. Pods that
// were only deleted have the place taken away: what made them may make others. `owner`: it will
// not. Pods that it took with it before their work was done make it CANCELLED_BY, unless one had
// failed before. If no end of a pod was seen, an owner that has succeeded tells that it was 0.
Ended end_of_workload(model::AttemptId attempt, std::span<const RankEnd> ranks,
                      const EndCause& cause, std::optional<OwnerEnd> owner);

// The cluster took the pod away, and not because it had ended.
bool is_disrupted(const PodView& pod);

}  // namespace gpu_platform::execution
