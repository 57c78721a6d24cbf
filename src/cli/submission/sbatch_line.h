#pragma once

#include <string>
#include <vector>

#include "base/result.h"

// Options of "#SBATCH" lines as options of the command line. Pure. Slurm's own commands
// (src/shims) know all of Slurm's options; here are those that one command of a job can have.

namespace gpu_platform::cli {

// Returns the words for `submit`. Options that change nothing here are left out, with a warning if
// a person might miss them. Errors name the option; an option without a counterpart is refused.
base::Result<std::vector<std::string>> words_of_sbatch_line(const std::vector<std::string>& words,
                                                            std::vector<std::string>& warnings);

}  // namespace gpu_platform::cli
