#pragma once

#include <optional>
#include <variant>
#include <vector>

#include "controller/state.h"
#include "execution/engine.h"
#include "model/event.h"

// The orders to the engine.

namespace gpu_platform::controller {

// An order of the core, which leaves after its events are durable. Each but a signal may be
// repeated.
using Effect = std::variant<execution::StartOrder, execution::StopOrder, execution::LimitOrder,
                            execution::ForgetOrder, execution::SignalOrder, execution::ResetOrder>;

// Returns the orders of an event that has been applied.
std::optional<Effect> order_of(const State& state, const model::Event& event);

// Returns the limits of the attempts of jobs with budgets of their own after an event that may have
// changed what they cost.
std::vector<Effect> limit_orders(const State& state, const model::Event& event);

// Orders that everything left of an attempt that was given up stops at once.
Effect stop_at_once(const State& state, model::AttemptId attempt);

// Returns the orders that may have been lost in a crash, computed from the state: what the engine
// must know about each attempt that still holds resources, and the starts and stops to repeat.
std::vector<execution::KnownAttempt> known_attempts(const State& state);
std::vector<Effect> pending_effects(const State& state);

}  // namespace gpu_platform::controller
