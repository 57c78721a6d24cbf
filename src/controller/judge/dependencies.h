#pragma once

#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "controller/state.h"
#include "model/command.h"
#include "model/event.h"

// Jobs that depend on times and on other jobs: begin, deadline, dependencies.

namespace gpu_platform::controller {

// `earliest`: when it could start at the earliest, or did.
base::Status check_times(const State& state, const model::JobSpec& spec, base::Instant earliest);

// What of the dependencies is open, for a job of `id`: invalid for one that is not there yet.
// Refused where jobs would wait for each other, or for one that the caller does not know.
base::Result<model::NewDependencies> judge_dependencies(
    const State& state, const model::Caller& caller, const std::vector<model::Dependency>& asked,
    const std::vector<model::EndedTarget>& ended, model::JobId id);

}  // namespace gpu_platform::controller
