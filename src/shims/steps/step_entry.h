#pragma once

#include <string>
#include <vector>

#include "shims/command_call.h"
#include "shims/steps/step_variables.h"

// Steps that are started from outside of their job: srun --jobid, srun and sbcast under salloc.

namespace gpu_platform::shims {

// Runs srun with these words inside the job, with the environment, directory and streams of this
// process; returns its exit code.
int step_from_outside(CommandCall& call, const std::string& job,
                      const std::vector<std::string>& words, bool wants_terminal);

// Whether this process runs in a job that came through the shims, so that srun starts steps of it.
bool is_inside(const Variables& variables);

// The allocation that this process belongs to from outside of it, as salloc's command does; empty:
// none.
std::string allocation_of(const Variables& variables);

// srun, with other variables than those of this process.
int srun_as(CommandCall& call, Variables variables);

}  // namespace gpu_platform::shims
