#pragma once

#include <span>
#include <vector>

#include "controller/state.h"
#include "execution/engine.h"
#include "model/evidence.h"

// Conditions that a cluster reports of its nodes and GPUs. They are levels, so what is told of them
// may be told again: after each start of the daemon an engine tells all that last.

namespace gpu_platform::controller {

// Returns whether the piece is a cluster's word on a condition.
bool is_of_cluster(const model::Evidence& piece);

// What is known of the conditions of one node, or of one GPU.
struct KnownConditions {
  std::span<const model::Evidence> kept;
  std::span<const model::Evidence> put_off;  // seen, and not written yet
  base::Instant restarted_at;                // of its node; unset: it was not
};
// Returns whether the piece says only what is known: the condition lasts in the same words, and its
// node was not started anew since it was told; or it is over, and did not last.
bool is_known(const model::Evidence& piece, const KnownConditions& known);

// Returns the latest restart of the node; unset: none is kept.
base::Instant restarted_at(const model::Node& node);

// Returns what lasts, by all that is kept: one for each name of a condition of a node or a GPU.
std::vector<execution::EvidenceObserved> lasting_conditions(const State& state);

}  // namespace gpu_platform::controller
