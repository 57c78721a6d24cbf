#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "controller/judge/events.h"
#include "controller/state.h"
#include "model/command.h"
#include "model/event.h"

// The actions of people on existing jobs: stop, hold, release, requeue, signal.

namespace gpu_platform::controller {

// Returns the kind of hold if the caller, who may touch the job, holds it: an owner's, also if the
// owner is an administrator, else an administrator's.
model::Hold hold_by(const model::Caller& caller, const model::JobSpec& spec);

// Returns the job if the caller may change it.
base::Result<const model::Job*> find_for(const State& state, const model::Caller& caller,
                                         model::JobId id);
// Returns the members of an array that are in the core; an error if there are none.
base::Result<std::vector<model::JobId>> members_for(const State& state, const model::Caller& caller,
                                                    model::JobId array);
// Returns all selected jobs that the caller may change.
base::Result<std::vector<model::JobId>> choose_jobs(const State& state, const model::Caller& caller,
                                                    const model::JobSelection& which);

// Returns the events of the action; none if nothing changes. A job that has come back with
// them may be eligible at once.
base::Result<Events> judge_action(const model::Caller& caller, const model::Job& job,
                                  model::JobAction action);

// Returns the order to send the signal to the processes of the job; refused unless it has some.
base::Result<model::SignalRequested> judge_signal(const State& state, const model::Caller& caller,
                                                  const model::Job& job, std::uint8_t signal);

// Returns whether the action would change the job.
base::Result<bool> would_change(const model::Caller& caller, const model::Job& job,
                                model::JobAction action);

}  // namespace gpu_platform::controller
