#pragma once

#include <string_view>
#include <vector>

#include "controller/judge/events.h"
#include "controller/state.h"
#include "execution/engine.h"

// What probes saw of nodes.

namespace gpu_platform::controller {

// What the node says of itself is new: a description, that it is heard, GPUs that it no longer
// reports or reports again. Its attempts of former boots have been given up before.
Events judge_node(const State& state, const execution::NodeObserved& seen);

// The attempts that hold something on the node; `boot_id`: of that boot alone, empty for all.
std::vector<model::AttemptId> attempts_on(const State& state, model::NodeId node,
                                          std::string_view boot_id = {});

}  // namespace gpu_platform::controller
