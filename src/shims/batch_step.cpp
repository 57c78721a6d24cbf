#include <csignal>

#include <fmt/format.h>

#include "base/parse.h"
#include "shims/call.h"
#include "shims/step.h"
#include "shims/submission.h"

// The first process of a job that came through sbatch or srun.

namespace gpu_platform::shims {

namespace {

// Taken before the job's variables are made, which leave nothing of SLURM_SHIM_*.
Files files_of(const Variables& variables) {
  Files files;
  files.output = variable(variables, "SLURM_SHIM_OUTPUT");
  files.error = variable(variables, "SLURM_SHIM_ERROR");
  files.input = variable(variables, "SLURM_SHIM_INPUT");
  files.is_appended = variable(variables, "SLURM_SHIM_OPEN_MODE") == "append";
  return files;
}

// A signal before the time limit that is meant for the steps reaches all processes of the job. What
// starts the steps leaves it alone, and with it the programs that the script runs without srun, for
// they are born as it is.
void ignore_signal_for_steps(const Variables& given) {
  const auto number = base::parse_count(variable(given, "SLURM_SHIM_SIGNAL"), 1, SIGRTMAX);
  if (number) std::signal(static_cast<int>(*number), SIG_IGN);
}

}  // namespace

int batch_step(Call& call) {
  Variables given = variables_of(call.around().environment);
  const Files files = files_of(given);
  ignore_signal_for_steps(given);
  const auto script = taken_script(given);
  const auto variables = job_environment(environment_of(given));
  if (!variables) return call.fail(variables.error());
  if (!script) return call.fail("the job carries no batch script; sbatch gives it one");
  if (const auto put = redirect(files, *variables); !put) return call.fail(put.error());
  call.fail(become_script(*script, call.words(), *variables));
  return 126;
}

int job_step(Call& call) {
  const Variables given = variables_of(call.around().environment);
  const Files files = files_of(given);
  ignore_signal_for_steps(given);
  const auto variables = job_environment(call.around().environment);
  if (!variables) return call.fail(variables.error());
  if (call.words().empty()) return call.fail("no command");
  std::uint32_t tasks = 1;
  if (const auto count = parse_number(variable(*variables, "SLURM_NTASKS"), 1)) tasks = *count;
  const auto code = run_step({tasks, files, call.words()}, *variables);
  return code ? *code : call.fail(code.error());
}

}  // namespace gpu_platform::shims
