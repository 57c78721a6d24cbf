#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "shims/step_variables.h"

// Starting programs inside a job: the batch script, and the tasks of steps. Everything stays below
// the job's first process, so in its cgroup.

namespace gpu_platform::shims {

// Files of a program; patterns of file_pattern.h, relative to its directory.
struct Files {
  std::string output;  // empty: as they are
  std::string error;   // empty: where the output goes
  std::string input;   // empty: as it is
  bool is_appended = false;
};

// The environment of this process with the variables of its job, when the platform started it as
// one.
base::Result<Variables> job_environment(const std::vector<std::string>& environment);

// Puts the files in place of this process's own. `variables` has the job's.
base::Status redirect(const Files& files, const Variables& variables);

// Becomes the script's interpreter. Returns only when that failed.
base::Error become_script(const std::string& script, const std::vector<std::string>& words,
                          const Variables& variables);

struct Step {
  std::uint32_t tasks = 1;
  Files files;
  std::vector<std::string> command;
};
// Runs the tasks: the highest exit code of all, 128 + n for a signal. One task takes the place of
// this process.
base::Result<int> run_step(Step step, const Variables& variables);

}  // namespace gpu_platform::shims
