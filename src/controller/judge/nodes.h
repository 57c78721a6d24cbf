#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/judge/events.h"
#include "controller/state.h"
#include "execution/engine.h"

// The reports of probes about nodes.

namespace gpu_platform::controller {

// The taint of a node that does not report, with the reason; without one, it reports again.
model::Event connection_changed(model::NodeId node, std::optional<std::string> why_lost);

// Judges what is new in a node's report: a description, that the node is heard, GPUs that it no
// longer reports or reports again. Its attempts of former boots have been given up before.
Events judge_node(const State& state, const execution::NodeObserved& seen);

// Judges on which boot the machine is: its nodes of another boot do not report until they are
// observed again. Their attempts stay as they are.
Events judge_boot(const State& state, const execution::MachineBooted& seen);

// Returns the attempts that hold something on the node; `boot_id`: only of that boot, or of all if
// it is empty.
std::vector<model::AttemptId> attempts_on(const State& state, model::NodeId node,
                                          std::string_view boot_id = {});

}  // namespace gpu_platform::controller
