#pragma once

#include "base/result.h"
#include "model/job.h"
#include "model/resource_request.h"

namespace gpu_platform::model {

// Checks that the values of a specification, each right for itself, go together. Errors are
// kInvalidArgument and name the API's field.
base::Status check_request(const ResourceRequest& request);
// Checks the processes of a job, which the request's shape decides.
base::Status check_processes(const JobSpec& spec);

}  // namespace gpu_platform::model
