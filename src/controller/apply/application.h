#pragma once

#include <vector>

#include "base/units.h"
#include "controller/state.h"
#include "model/event.h"
#include "model/job.h"
#include "model/node.h"
#include "model/states.h"

// What the meanings of all events share. The events of a step are applied one after the other, by
// one thread.

namespace gpu_platform::controller {

// The event that is being carried into the state. An id or a transition that does not exist is a
// bug and stops the program.
struct Application {
  State& state;
  base::Instant at;  // of the event, and not before any former one
  Outbox out;        // what leaves the core with it

  model::Job& job(model::JobId id);
  model::Node& node(model::NodeId id);
  const model::Organisation& organisation() const { return *state.policy->organisation; }
};

model::Attempt& find_attempt(model::Job& job, model::AttemptId id);

// With the attempt, which has ended, all its steps have ended.
void end_steps(model::Attempt& attempt);

// The states of attempts change here alone; move_job() of queue.h changes those of jobs.
void move_attempt(model::Attempt& attempt, model::AttemptTrigger trigger);
// Tells all GPUs that the attempt holds how far it is, and the books.
void move_holders(Application& a, model::AttemptId id, const model::Attempt& attempt);

}  // namespace gpu_platform::controller
