#pragma once

#include <optional>
#include <variant>
#include <vector>

#include "controller/state.h"
#include "execution/engine.h"
#include "model/event.h"

// What the engine is asked to do.

namespace gpu_platform::controller {

// A wish of the core that leaves after its events are durable. Each may be repeated.
using Effect = std::variant<execution::StartOrder, execution::StopOrder, execution::LimitOrder,
                            execution::ForgetOrder>;

// What the event, which has been applied, asks for.
std::optional<Effect> order_of(const State& state, const model::Event& event);

// That whatever is left of the attempt, which was given up, must stop at once.
Effect stop_at_once(const State& state, model::AttemptId attempt);

// The orders that may have been lost in a crash, worked out from the state: what the engine must
// know of each attempt that still holds resources, and the starts and stops to repeat.
std::vector<execution::KnownAttempt> known_attempts(const State& state);
std::vector<Effect> pending_effects(const State& state);

}  // namespace gpu_platform::controller
