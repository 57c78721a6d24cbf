#include <algorithm>
#include <csignal>
#include <filesystem>

#include <fmt/format.h>

#include "base/parse.h"
#include "shims/command_call.h"
#include "shims/steps/rendezvous.h"
#include "shims/steps/step.h"
#include "shims/steps/step_rules.h"
#include "shims/steps/step_shares.h"
#include "shims/submission/submission.h"

// The first process of a job that came through sbatch or srun.

namespace gpu_platform::shims {

namespace {

// Taken before the job's variables are made, which leave nothing of SLURM_SHIM_*.
Files files_of_batch(const Variables& variables) {
  Files files;
  files.output = variable(variables, "SLURM_SHIM_OUTPUT");
  files.error = variable(variables, "SLURM_SHIM_ERROR");
  files.input = variable(variables, "SLURM_SHIM_INPUT");
  files.is_appended = variable(variables, "SLURM_SHIM_OPEN_MODE") == "append";
  return files;
}

// The submission's files, where srun was not told which tasks have the stream.
void put_unless_given(const Files& submitted, Files& files) {
  files.is_appended = submitted.is_appended;
  if (files.output.empty()) files.output = submitted.output;
  if (files.error.empty()) files.error = submitted.error;
  if (files.input.empty()) files.input = submitted.input;
}

// One task for each node where srun was told no number.
base::Status put_places(const Variables& variables, Step& step) {
  step.places.nodes = nodes_of_job(variables);
  const auto nodes = static_cast<std::uint32_t>(step.places.nodes.size());
  const auto tasks = parse_number(variable(variables, "SLURM_NTASKS"), nodes);
  step.tasks = tasks.value_or(nodes);
  Distribution distribution;
  if (const std::string_view text = variable(variables, "SLURM_DISTRIBUTION"); !text.empty()) {
    TRY_ASSIGN(distribution, parse_distribution(text));
  }
  step.places.layout = layout_of(step.tasks, nodes, distribution);
  StepAmounts& amounts = step.amounts.emplace();
  for (const StepNode& node : step.places.nodes) {
    amounts.cpus += node.cpus;
    amounts.memory_bytes += node.memory_bytes.value_or(0);
  }
  return {};
}

// A signal before the time limit that is meant for the steps reaches all processes of the job. What
// starts the steps leaves it alone, and with it the programs that the script runs without srun, for
// they are born as it is.
void ignore_signal_for_steps(const Variables& given) {
  const auto number = base::parse_count(variable(given, "SLURM_SHIM_SIGNAL"), 1, SIGRTMAX);
  if (number) std::signal(static_cast<int>(*number), SIG_IGN);
}

// The folder of PATH with these commands, for login shells (deploy/profile.d).
void put_commands_folder(Variables& variables) {
  const auto self = own_path();
  std::string_view rest = variable(variables, "PATH");
  while (self && !rest.empty()) {
    const std::string folder(rest.substr(0, rest.find(':')));
    rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
    std::error_code error;
    if (std::filesystem::equivalent(folder + "/srun", *self, error) && !error) {
      variables["GPU_PLATFORM_SLURM_COMMANDS"] = folder;
      return;
    }
  }
}

// srun, if it is outside of the job and lends its standard streams: they become this process's.
base::Result<std::optional<Connection>> meet_caller(const Variables& given) {
  const std::string place(variable(given, "SLURM_SHIM_PLACE"));
  if (place.empty()) return std::optional<Connection>();
  TRY_ASSIGN(Connection caller, meet(place));
  TRY_ASSIGN(const auto streams, caller.borrow_streams());
  for (int fd = 0; fd < static_cast<int>(streams.size()); ++fd) {
    ::dup2(streams[static_cast<std::size_t>(fd)], fd);
    ::close(streams[static_cast<std::size_t>(fd)]);
  }
  return std::optional(std::move(caller));
}

}  // namespace

int batch_step(CommandCall& call) {
  Variables given = variables_of(call.around().environment);
  const Files files = files_of_batch(given);
  ignore_signal_for_steps(given);
  const auto script = taken_script(given);
  auto variables = job_environment(environment_of(given));
  if (!variables) return call.fail(variables.error());
  const auto shares = make_share_file();
  if (!shares) return call.fail(shares.error());
  put_commands_folder(*variables);
  (*variables)["GPU_PLATFORM_STEP_SHARES"] = *shares;
  (*variables)["GPU_PLATFORM_STEP_DEVICES"] = variable(*variables, "CUDA_VISIBLE_DEVICES");
  if (!script) return call.fail("the job carries no batch script; sbatch gives it one");
  if (const auto put = redirect(files, *variables); !put) return call.fail(put.error());
  call.fail(become_script(*script, call.words(), *variables));
  return 126;
}

int job_step(CommandCall& call) {
  const Variables given = variables_of(call.around().environment);
  const Files files = files_of_batch(given);
  ignore_signal_for_steps(given);
  auto variables = job_environment(call.around().environment);
  if (!variables) return call.fail(variables.error());
  put_commands_folder(*variables);
  // Those of a job that this one was submitted from.
  variables->erase("GPU_PLATFORM_STEP_SHARES");
  (*variables)["GPU_PLATFORM_STEP_DEVICES"] = variable(*variables, "CUDA_VISIBLE_DEVICES");
  if (call.words().empty()) return call.fail("no command");
  const auto caller = meet_caller(given);
  if (!caller) return call.fail(fmt::format("srun has gone: {}", caller.error().message));
  const auto rules = taken_rules(variable(given, "SLURM_SHIM_RULES"));
  if (!rules) return call.fail(rules.error());
  Step step;
  step.command = call.words();
  if (*caller) step.caller = &**caller;
  if (const auto put = put_places(*variables, step); !put) return call.fail(put.error());
  std::vector<std::string> warnings;
  if (const auto put = put_task_rules(*rules, *variables, step, warnings); !put)
    return call.fail(put.error());
  call.warn_all(warnings);
  put_unless_given(files, step.files);
  Resources resources;
  if (const auto each = parse_number(variable(*variables, "SLURM_GPUS_PER_TASK"), 1))
    resources.gpus_per_task = *each;
  const auto binding = gpu_binding_of(*rules, resources);
  if (!binding) return call.fail(binding.error());
  step.binding = *binding;
  step.cpus_per_task = parse_number(variable(*variables, "SLURM_CPUS_PER_TASK"), 1).value_or(1);
  const auto code = run_step(std::move(step), *variables);
  return code ? *code : call.fail(code.error());
}

}  // namespace gpu_platform::shims
