#pragma once

#include <optional>

#include "base/units.h"
#include "controller/state.h"
#include "model/job.h"
#include "model/policy.h"

// The part of apply() for orders that depend on usage: it charges accounts and decides when usage
// counts. By the rules of apply() it depends on nothing but the state and the event's time.

namespace gpu_platform::controller {

// Records that there is a job of this account.
void note_account(State& state, const model::JobSpec& spec);

// The attempt begins to hold something. Call it before that.
void begin_to_hold(State& state, base::Instant at);

// The attempt gives back what it held. It is still among the attempts that hold something.
void charge(State& state, const model::Job& job, const model::Attempt& attempt, base::Instant at);

// Charges the accounts of all running jobs, and lets all usage count.
void count_use(State& state, base::Instant at);

// Counts usage up to now by the former policy's weights, and from now on by the new one's; sets the
// new policy.
void change_policy(State& state, const model::Policy& policy, base::Instant at);

// Orders the queue by the counted usage.
void follow_use(State& state);

// Returns when usage is to be counted next; nothing while there is no usage or the order does not
// need it.
std::optional<base::Instant> next_count(const State& state);

}  // namespace gpu_platform::controller
