#pragma once

#include <optional>

#include "base/units.h"
#include "controller/state.h"
#include "model/job.h"
#include "model/policy.h"

// The part of apply() for orders that depend on usage: it charges accounts and decides when usage
// counts. By the rules of apply() it depends on nothing but the state and the event's time.

namespace gpu_platform::controller {

// A job of this account is known from here on.
void note_account(State& state, const model::JobSpec& spec);

// The attempt begins to hold something. To be called before it does.
void begin_to_hold(State& state, base::Instant at);

// The attempt gives back what it held; it is still among those who hold something.
void charge(State& state, const model::Job& job, const model::Attempt& attempt, base::Instant at);

// Charges the accounts of all running jobs, and lets all usage count.
void count_use(State& state, base::Instant at);

// Use up to now by the former policy's weights, from now on by the new one's; makes it the policy.
void change_policy(State& state, const model::Policy& policy, base::Instant at);

// The queue by what has been counted.
void follow_use(State& state);

// Returns when usage is to be counted next; nothing while there is no usage or the order does not
// need it.
std::optional<base::Instant> next_count(const State& state);

}  // namespace gpu_platform::controller
