#pragma once

#include "api/call_context.h"
#include "api/peer.h"
#include "gpu_platform/v1/jobs.pb.h"

namespace gpu_platform::api {

// A new job on its way to the core.
struct Submission {
  v1::JobSpec spec;
  bool dry_run = false;  // it is judged and not accepted
};

// Finds the job's owner, and hands the job to the core together with the jobs that it is to wait
// for. `finish` is called through `resume`, or at once if the job is refused before the core.
void send_submission(const CallContext& context, Submission submission, const Peer& peer,
                     Resume resume, CallContext::Finish finish);

}  // namespace gpu_platform::api
