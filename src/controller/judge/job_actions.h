#pragma once

#include <vector>

#include "base/result.h"
#include "controller/judge/events.h"
#include "controller/state.h"
#include "model/command.h"
#include "model/event.h"

// What people do with jobs that are there: stop, hold, release, requeue.

namespace gpu_platform::controller {

// Whose hold it is when the caller holds a job of that spec: an owner's, also where the owner is an
// administrator, or an administrator's.
model::Hold hold_by(const model::Caller& caller, const model::JobSpec& spec);

// The job, if the caller may change it.
base::Result<const model::Job*> find_for(const State& state, const model::Caller& caller,
                                         model::JobId id);
// The members of an array that are in the core; an error where there is none.
base::Result<std::vector<model::JobId>> members_for(const State& state, const model::Caller& caller,
                                                    model::JobId array);
// All jobs that the caller may change and that are meant.
base::Result<std::vector<model::JobId>> choose_jobs(const State& state, const model::Caller& caller,
                                                    const model::JobSelection& which);

// The events that the action comes to; none where the job is so already. A job that has come back
// with them may be eligible at once.
base::Result<Events> judge_action(const model::Caller& caller, const model::Job& job,
                                  model::JobAction action);

// Whether it comes to anything.
base::Result<bool> would_change(const model::Caller& caller, const model::Job& job,
                                model::JobAction action);

}  // namespace gpu_platform::controller
