#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "execution/kubernetes/pods/pod_attempts.h"
#include "execution/kubernetes/pods/ranks.h"

// What PodAttempts keeps of each attempt; for its own sources alone.

namespace gpu_platform::execution {

// What one pod of an attempt is and needs.
struct PodAttempts::Rank {
  std::optional<PodView> pod;  // as last seen, also when it is gone
  bool is_there = false;       // the pod is in the cluster
  bool is_claim_made = false;
  bool is_claim_there = false;  // as far as is known
  bool is_pod_made = false;     // asked for with success, or seen
  bool awaits_sight = false;    // made, and no watch has told of it yet
  bool was_gone = false;        // the pod was in the cluster and is not any more
  std::string pod_uid;          // of the pod that was made
  bool is_allocated = false;    // P2
  bool is_bound = false;        // P2
  bool is_gate_lifted = false;
  bool is_delete_sent = false;
  std::uint32_t delete_grace = 0;
  bool is_output_kept = false;
  int output_tries = 0;
  bool is_released = false;  // kFinalizer is taken away
  std::uint64_t under_way = 0;
  int tries = 0;
  base::Instant not_before;      // of the next call
  base::Instant claim_asked_at;  // when its removal was last asked for
  base::Instant image_since;     // since when its image cannot be had
  // Until then its pod is not released, because the daemon before may have asked for the same pod:
  // while it is there, that call changes nothing.
  base::Instant kept_until;
};

struct PodAttempts::Attempt : AttemptLife {
  std::string environment;
  std::vector<execution::Rank> shape;
  std::vector<Rank> ranks;
  bool is_service_made = false;
  base::Instant former_calls_until;  // those of the daemon before may arrive; unset: it made none
  base::Instant active_at;           // when it was seen to run, or had input or output
  std::string namespace_seen;        // of what is in the cluster

  bool is_nothing() const { return !has_order && ranks.empty(); }
  bool is_gang() const { return ranks.size() > 1; }
};

}  // namespace gpu_platform::execution
