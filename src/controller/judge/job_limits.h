#pragma once

#include <optional>

#include "base/result.h"
#include "base/units.h"
#include "controller/state.h"
#include "model/command.h"
#include "model/job.h"

// The limits of the site's policy on requests, for new jobs and for jobs that are changed.

namespace gpu_platform::controller {

base::Status check_priority(const State& state, const model::Caller& caller,
                            const model::Priority& priority);

base::Status check_time_limit(const State& state, base::Duration time_limit);

// `time_limit`: of the same job. An absent expected time passes.
base::Status check_expected(std::optional<base::Duration> expected, base::Duration time_limit);

// A slower GPU type takes longer, and that time too must be allowed.
base::Status check_speeds(const State& state, const model::ResourceRequest& request,
                          base::Duration time_limit);

// Refuses a job that a limit of its owner would keep back for ever, even if nothing else runs.
base::Status check_could_run(const State& state, const model::JobSpec& spec);

}  // namespace gpu_platform::controller
