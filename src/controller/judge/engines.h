#pragma once

#include "base/result.h"
#include "model/engine_kind.h"
#include "model/job.h"
#include "model/policy.h"

// Which engines can run a job.

namespace gpu_platform::controller {

struct EngineWishes {
  bool refuses_network = false;  // see model::SubmitJob
};

// Returns the engines of the site that can run the job, at least one. A job without an image runs
// only as processes. The error names the field at fault, and for each engine that the site has
// what keeps the job from it.
base::Result<model::EngineSet> engines_for(const model::Policy& policy, const model::JobSpec& spec,
                                           EngineWishes wishes = {});

// Checks a changed job against the engines that were chosen when it was submitted: all of them must
// still be able to run it.
base::Status check_engines(const model::JobSpec& spec);

}  // namespace gpu_platform::controller
