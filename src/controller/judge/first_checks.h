#pragma once

#include <set>

#include "controller/judge/events.h"
#include "controller/state.h"
#include "model/ids.h"
#include "model/node.h"

namespace gpu_platform::controller {

// Finds the GPUs that are to be checked before their first work (Policy::health_check_at_start):
// all when the daemon starts, those of a node when it comes or comes back, and one that is back
// after it was out of service.
// Ownership: values; owned by the core. It is in no snapshot: after a restart all GPUs are to be
// checked. Thread: one.
class FirstChecks {
 public:
  // The node is new, or reports again.
  void note(model::NodeId node) { nodes_.insert(node); }
  // What may bring a GPU or a node back. Call it before the event is applied.
  void note(const State& state, const model::Event& event);
  // Returns the orders of these checks, once, before anything is placed. Empty where the policy
  // wants none.
  Events take(const State& state);

 private:
  bool has_begun_ = false;
  std::set<model::NodeId> nodes_;
  std::set<model::GpuRef> gpus_;
};

}  // namespace gpu_platform::controller
