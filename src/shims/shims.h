#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/text/roff.h"
#include "client/session.h"
#include "shims/options/options_page.h"

// Slurm's commands as clients of the daemon, for scripts and programs that were written for Slurm.

namespace gpu_platform::shims {

// Runs the command that argv[0] names ("sbatch", through a link), or else argv[1]; returns the exit
// code. Call it once, from main, before any thread is started.
int run(int argc, char** argv);

// The same with given process environment: the command's name and its words.
int run_in(const client::ProcessEnvironment& process_environment, const std::string& name,
           const std::vector<std::string>& words);

// The commands that people call, with their options.
std::vector<CommandOptions> option_tables();

// A man page for each of them: gpu-platform-sbatch(1), …; Slurm's own pages keep their names.
std::vector<cli::ManPage> man_pages();

}  // namespace gpu_platform::shims
