#pragma once

#include <string>
#include <vector>

#include "cli/session.h"

// Slurm's commands as clients of the daemon, for scripts and programs that were written for Slurm.

namespace gpu_platform::shims {

// Runs the command that argv[0] names ("sbatch", through a link), or else argv[1]; returns the exit
// code. Call it once, from main, before any thread is started.
int run(int argc, char** argv);

// The same with given surroundings: the command's name and its words.
int run_in(const cli::Surroundings& surroundings, const std::string& name,
           const std::vector<std::string>& words);

}  // namespace gpu_platform::shims
