#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "shims/options/option_table.h"

// The environment variables that stand for options of sbatch, salloc and srun (their "input
// environment variables"). docs/slurm-shims.md names each of them. Pure.

namespace gpu_platform::shims {

// Whether srun reads it in a job too. The others tell of the job itself there.
enum class InJobs { kNot, kToo };

// Empty names: the command has none for that option. Of several rows for one option later ones go
// over earlier ones.
struct InputVariable {
  std::string_view option;
  std::string_view sbatch;
  std::string_view salloc;
  std::string_view srun;
  InJobs in_jobs = InJobs::kNot;
};
std::span<const InputVariable> input_variables();

enum class VariablesOf { kSbatch, kSalloc, kSrun, kSrunInJob };

// Whether srun reads the variable of this name in a job.
bool is_read_in_jobs(std::string_view name);

// Reads those that the environment (NAME=VALUE) has. An error names the variable and the option.
base::Status read_input_variables(VariablesOf command, std::span<const Option> table,
                                  std::span<const std::string> environment, Settings& settings,
                                  std::vector<std::string>& warnings);

}  // namespace gpu_platform::shims
