#pragma once

#include <optional>

#include "base/result.h"
#include "base/units.h"
#include "gpu_platform/v1/jobs.pb.h"

namespace gpu_platform::api {

// Returns the time limit that follows from gpu_time_seconds: a job that takes turns on its GPU has
// that time in it at least. Whole GPUs: the same time. Never shorter than it should be, in whole
// milliseconds. Nothing where the message does not have the field, or where its own limits refuse
// it. Errors name the field and say what to write instead.
base::Result<std::optional<base::Duration>> limit_of_gpu_time(const v1::JobSpec& spec);

}  // namespace gpu_platform::api
