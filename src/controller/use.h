#pragma once

#include <optional>

#include "base/units.h"
#include "controller/state.h"
#include "model/job.h"
#include "model/policy.h"

// What apply() does for the orders that ask what was used: who is charged for what, and when it
// counts. Part of apply(), by its rules: nothing but the state and the event's time enters.

namespace gpu_platform::controller {

// A job of this account is known from here on.
void note_account(State& state, const model::JobSpec& spec);

// The attempt begins to hold something. To be called before it does.
void begin_to_hold(State& state, base::Instant at);

// The attempt gives back what it held; it is still among those who hold something.
void charge(State& state, const model::Job& job, const model::Attempt& attempt, base::Instant at);

// Charges all who hold something, and lets everything count.
void count_use(State& state, base::Instant at);

// Use up to now by the former policy's weights, from now on by the new one's; makes it the policy.
void change_policy(State& state, const model::Policy& policy, base::Instant at);

// The queue by what has been counted.
void follow_use(State& state);

// When use is to be counted next; nothing while nobody uses anything or the order does not ask.
std::optional<base::Instant> next_count(const State& state);

}  // namespace gpu_platform::controller
