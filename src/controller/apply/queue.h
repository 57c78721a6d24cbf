#pragma once

#include "controller/apply/application.h"

// The states of jobs, and the indices and counts that follow them.

namespace gpu_platform::controller {

// The only place where a job's state changes, besides where leave_indices() and
// enter_indices() are called.
void move_job(Application& a, model::Job& job, model::JobTrigger trigger);

// Takes the job, as it is, out of the indices by state; puts it into them.
void leave_indices(Application& a, const model::Job& job);
void enter_indices(Application& a, model::Job& job);

// Takes the job out of the queue if it has to wait for something after all.
void postpone_if_gated(Application& a, model::Job& job);

// The job has ended: others may have waited for that, and its request id begins to expire.
// It leaves the core if it holds nothing any more, and is gone afterwards.
void follow_end(Application& a, model::Job& job);
void depart_if_done(Application& a, model::Job& job);

}  // namespace gpu_platform::controller
