#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "controller/state.h"
#include "model/command.h"
#include "model/event.h"

// Jobs that depend on times and on other jobs: begin, deadline, dependencies.

namespace gpu_platform::controller {

// `earliest`: the earliest time at which the job could start, or did.
// `limit_from`: for the message.
enum class TimeLimitFrom : std::uint8_t { kJob, kDefault };
base::Status check_times(const model::JobSpec& spec, base::Instant earliest,
                         TimeLimitFrom limit_from = TimeLimitFrom::kJob);

// The job, or the submission, that is to wait.
struct Dependent {
  const model::JobSpec& spec;
  model::JobId id;                     // invalid: of a submission
  std::optional<std::uint32_t> index;  // of a member of an array that is there
};

// Returns the dependencies that are still open. An `aftercorr` on an array becomes one on each of
// its members that an index of the dependent has. Refused if jobs would wait for each other, or for
// a job that the caller does not know.
base::Result<model::NewDependencies> judge_dependencies(
    const State& state, const model::Caller& caller, const Dependent& dependent,
    const std::vector<model::Dependency>& asked, const std::vector<model::EndedTarget>& ended);

// Refused if jobs would wait for each other once the job has that name, for which others wait
// (singleton).
base::Status check_name(const State& state, const model::Job& job, const std::string& name);

}  // namespace gpu_platform::controller
