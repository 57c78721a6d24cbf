#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "shims/steps/cpu_binding.h"
#include "shims/steps/gpu_binding.h"
#include "shims/steps/rendezvous.h"
#include "shims/steps/step_places.h"
#include "shims/steps/step_plan.h"
#include "shims/steps/step_variables.h"
#include "shims/steps/step_watch.h"

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

// Which tasks have one of the standard streams: --input, --output and --error with "all", "none" or
// the number of a task.
struct StreamChoice {
  enum class Kind { kAll, kNone, kOne };
  Kind kind = Kind::kAll;
  std::uint32_t task = 0;

  bool has(std::uint32_t rank) const {
    return kind == Kind::kAll || (kind == Kind::kOne && task == rank);
  }
};

struct Step {
  std::uint32_t tasks = 1;
  Files files;
  StreamChoice input;
  StreamChoice output;
  StreamChoice error;
  bool is_labelled = false;    // lines begin with their task's number
  bool is_unbuffered = false;  // tasks write to terminals
  std::vector<std::string> command;
  std::vector<std::vector<std::string>> programs;  // by task, in place of `command`; may be empty
  std::uint32_t id = 0;
  StepPlaces places;
  GpuBinding binding;
  Cpus cpus;  // those that the tasks are bound to; empty: none is bound
  std::uint32_t cpus_per_task = 1;
  CpuBinding cpu_binding;
  bool ends_on_failure = false;  // of one task: the others are killed
  OnInterrupt on_interrupt = OnInterrupt::kTell;
  std::optional<std::int64_t> seconds;            // of the step; then its tasks are killed
  std::optional<std::int64_t> seconds_after_end;  // of the first task to end
  std::optional<StepAmounts> amounts;             // absent: the daemon is not told of the step
  // srun where it is outside of the job: the step's signals come from it, and it is told of the
  // tasks' end. Null: this process is srun.
  const Connection* caller = nullptr;
};
// Runs the tasks and returns the highest exit code of all, 128 + n for a signal. One task that srun
// has nothing to do for has its terminal, and takes its place if the daemon is not told either.
base::Result<int> run_step(Step step, Variables variables);

// Returns the pointers that exec takes; they last as long as the texts.
std::vector<char*> pointers(std::vector<std::string>& texts);

// The CPUs that this process may use, as the system numbers them.
Cpus allowed_cpus();

}  // namespace gpu_platform::shims
