#pragma once

#include "api/core_access.h"
#include "controller/snapshot.h"
#include "gpu_platform/v1/jobs.pb.h"
#include "model/job.h"

namespace gpu_platform::api {

// Sets the cost of the job: of attempts that are over by the ledger, of others up to now. Leaves it
// out if no attempt was ever started, or no ledger can be read. One look at the ledger. `snapshot`:
// that the job is of, or a newer one if it has left the core.
void add_cost(const CoreAccess& core, const controller::Snapshot& snapshot, const model::Job& job,
              v1::Job& out);

}  // namespace gpu_platform::api
