#pragma once

#include <optional>

#include "base/result.h"
#include "base/units.h"
#include "controller/state.h"
#include "model/command.h"
#include "model/job.h"

// What the site's policy lets anybody ask for, of new jobs and of jobs that are changed.

namespace gpu_platform::controller {

base::Status check_priority(const State& state, const model::Caller& caller,
                            const model::Priority& priority);

base::Status check_time_limit(const State& state, base::Duration time_limit);

// `time_limit`: of the same job. An expectation that is absent is none.
base::Status check_expected(std::optional<base::Duration> expected, base::Duration time_limit);

// Where it is slower it takes longer, and that too must be allowed.
base::Status check_speeds(const State& state, const model::ResourceRequest& request,
                          base::Duration time_limit);

}  // namespace gpu_platform::controller
