#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "shims/options.h"

// The options of sbatch and srun, and the directives of batch scripts. Pure. docs/slurm-shims.md is
// for people what these tables are for the program.

namespace gpu_platform::shims {

std::span<const Option> sbatch_options();
std::span<const Option> srun_options();
std::span<const Option> salloc_options();

// The words of one "#SBATCH" line behind that word: quotes and backslashes as a shell has them, up
// to a "#".
base::Result<std::vector<std::string>> directive_words(std::string_view line);

// Reads the directives: lines that begin with "#SBATCH", up to the first line that is neither empty
// nor a comment.
base::Status read_directives(std::string_view script, Settings& settings,
                             std::vector<std::string>& warnings);

// Refuses the parts of a heterogeneous job, which stand between words ":". `words`: what is behind
// the options.
base::Status check_one_part(std::span<const std::string> words);

// Refuses what can be no batch script: without an interpreter line, with a NUL, or with DOS line
// ends.
base::Status check_script(std::string_view script);

// The interpreter line as the system reads it: the program, and at most one argument.
std::vector<std::string> interpreter_of(std::string_view script);

}  // namespace gpu_platform::shims
