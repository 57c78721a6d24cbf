#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "shims/options/option_table.h"

// The options of sbatch and srun, and the directives of batch scripts. Pure. docs/slurm-shims.md is
// for people what these tables are for the program.

namespace gpu_platform::shims {

std::span<const Option> sbatch_options();
std::span<const Option> srun_options();
std::span<const Option> salloc_options();

// Reads the directives: lines that begin with "#SBATCH", up to the first line that is neither empty
// nor a comment.
base::Status read_directives(std::string_view script, std::vector<Settings>& parts,
                             std::vector<std::string>& warnings);

// Reads the options of the parts of a job, which stand between words ":" on the command line, into
// as many settings. Returns the words behind the last part's options.
base::Result<std::vector<std::string>> read_parts(std::span<const Option> table,
                                                  std::vector<std::string> words,
                                                  std::vector<Settings>& parts,
                                                  std::vector<std::string>& warnings);

// Why programs of several parts are refused outside of a job that has them.
base::Error several_parts();

// Refuses what can be no batch script: without an interpreter line, with a NUL, or with DOS line
// ends.
base::Status check_script(std::string_view script);

}  // namespace gpu_platform::shims
