#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/job.h"
#include "model/spec_patch.h"
#include "simulation/scenarios/scenario.h"

// The options of "submit" and "update" that say what a job asks for: those of the command line,
// without dashes, as the table of a specification's members has them (model/job_spec_fields.h). A
// flag is written as "hold=yes".

namespace gpu_platform::simulation {

// The names that "submit" and "update" know.
std::vector<std::string_view> options_of_submission();
std::vector<std::string_view> options_of_update();

// Reads what the statement says of the job, except for times, nodes and other jobs, which the
// runner knows.
base::Status read_spec(const Statement& statement, model::JobSpec& spec);
base::Status read_patch(const Statement& statement, model::SpecPatch& patch);

}  // namespace gpu_platform::simulation
