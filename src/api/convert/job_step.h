#pragma once

#include "api/convert/job.h"
#include "base/result.h"
#include "gpu_platform/v1/jobs.pb.h"
#include "model/command.h"

// Steps of jobs.

namespace gpu_platform::api {

// Adds the steps of all attempts to the message of the job.
void add_steps(const model::Job& job, const Nodes& nodes, v1::Job& out);

// Returns the report about a step of the job. The error names the field.
base::Result<model::RecordStep> to_model(const v1::JobStep& step, const model::Job& job,
                                         const Nodes& nodes);

}  // namespace gpu_platform::api
