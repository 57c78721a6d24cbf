#pragma once

#include <optional>
#include <span>
#include <string>

#include "execution/engine.h"
#include "execution/kubernetes/pods/pod_view.h"

// How the pods of an attempt ended, in the platform's terms. Pure.

namespace gpu_platform::execution {

// What is known of one rank when the attempt has come to its end.
struct RankEnd {
  std::optional<PodView> pod;  // as it was last seen; absent: there is none, and never was
  bool vanished = false;       // its pod was there and is gone, so its end is not known
};

// What decided the end beside the pods.
struct EndCause {
  std::optional<StopOrder> stop;             // we stopped it, for this
  std::optional<base::Duration> time_limit;  // it was stopped at this limit
  std::string failed_start;                  // it was taken back before all ranks ran, for this
};

// The end of the attempt: of the rank that failed first, or of all where none failed. Rules: an
// order of ours decides the reason; a rank that Kubernetes took away is PREEMPTED, or NODE_LOST
// with its node; a program that could not be started is LAUNCH_FAILED, with 127 or 126 as a shell
// has it where the runtime says so; a container that the kernel killed for its memory is
// OUT_OF_MEMORY. A pod that was deleted by something else counts as taken away.
Ended end_of(model::AttemptId attempt, std::span<const RankEnd> ranks, const EndCause& cause);

// Nothing of the pod runs, and nothing will: it is over, or it was deleted before it had a node.
bool is_dead(const PodView& pod);

// A rank has failed in a way that ends the whole attempt.
bool has_failed(const RankEnd& rank);

}  // namespace gpu_platform::execution
