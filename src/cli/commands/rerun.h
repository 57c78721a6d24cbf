#pragma once

#include "base/result.h"
#include "gpu_platform/v1/jobs.pb.h"

namespace gpu_platform::cli {

// Whether `jobs rerun` can submit the job again; the error is a sentence that says why not.
base::Status check_can_be_rerun(const v1::Job& job);

}  // namespace gpu_platform::cli
