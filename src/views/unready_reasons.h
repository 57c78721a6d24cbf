#pragma once

#include "controller/snapshot.h"
#include "model/job.h"
#include "model/preemption_hold.h"
#include "model/wait_reason.h"

// The reasons of jobs that wait for something else than room. Each is a function of the snapshot.

namespace gpu_platform::views {

// The job is HELD.
model::WaitReason explain_held(const model::Job& job);

// The job is PENDING. The reason is the first gate that keeps it: another job, a time, its
// siblings, the rest of its back-off.
model::WaitReason explain_pending(const controller::Snapshot& snapshot, const model::Job& job);

// Others are being stopped for the job.
model::WaitReason explain_hold(const controller::Snapshot& snapshot,
                               const model::PreemptionHold& hold);

// A job in the queue may have to wait for another occurrence of its reservation than the one that
// it came for, or for a begin that was changed. Returns false if it does not.
bool explain_next_occurrence(const controller::Snapshot& snapshot, const model::JobSpec& spec,
                             model::WaitReason& reason);

}  // namespace gpu_platform::views
