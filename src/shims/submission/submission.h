#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "gpu_platform/v1/jobs.pb.h"
#include "shims/command_call.h"
#include "shims/options/option_table.h"
#include "shims/steps/step_variables.h"
#include "shims/submission/resources.h"

// Making a job of the platform out of what sbatch and srun were asked for.

namespace gpu_platform::shims {

// What the job is to run.
struct Work {
  std::string step;  // which command of ours starts it: "batch-step", "job-step"
  std::string name;  // unless --job-name gives one
  std::string
      script;  // of sbatch; the job carries it along, so that a later change means nothing to it
  std::vector<std::string> words;  // the script's name and arguments, or the command
  Variables variables;             // of SLURM_SHIM_*, besides those of the script
  v1::JobSpec fields;              // of the request, besides what the options ask for
};

// Puts the files of -o, -e and -i into the work: output goes where the platform opens it, so that
// it shows it too; what it has no pattern for is opened inside the job. `is_one_task` says that one
// program writes them. Errors name the option.
base::Status put_files(const Settings& settings, bool is_one_task, Work& work);

// The script cut into variables SLURM_SHIM_SCRIPT_0, …, and put together again. One variable of a
// process holds 128 KiB at most.
void put_script(Variables& variables, const std::string& script);
std::optional<std::string> taken_script(Variables& variables);

// The variables of the caller that --export lets through.
Variables exported(const std::string& selection, const Variables& callers);

// What the daemon is asked for. Warnings are told.
base::Result<v1::JobSpec> job_request(CommandCall& call, client::Client& client,
                                      const Settings& settings, const Work& work);

// This program, under a name that does not depend on the link it was called by.
base::Result<std::string> own_path();

// Sends it: the job's id, or the exit code after a message.
std::expected<std::string, int> submit(CommandCall& call, client::Client& client,
                                       const v1::JobSpec& spec);

}  // namespace gpu_platform::shims
