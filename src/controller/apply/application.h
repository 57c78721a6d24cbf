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
  base::Instant at;                   // of the event, and not before any former one
  std::vector<model::Job>& departed;  // jobs that leave the core with this event

  model::Job& job(model::JobId id);
  model::Node& node(model::NodeId id);
  const model::Organisation& organisation() const { return *state.policy->organisation; }
};

model::Attempt& find_attempt(model::Job& job, model::AttemptId id);

// With the attempt, which has ended, all its steps have ended.
void end_steps(model::Attempt& attempt);

// The states of attempts and GPUs change here alone; move_job() of queue.h changes those of jobs.
void move_attempt(model::Attempt& attempt, model::AttemptTrigger trigger);
void move_gpu(model::Gpu& gpu, model::GpuTrigger trigger);
// Moves all GPUs of the allocation and tells the books.
void move_gpus(Application& a, const model::Allocation& allocation, model::GpuTrigger trigger);

}  // namespace gpu_platform::controller
