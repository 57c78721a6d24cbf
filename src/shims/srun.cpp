#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "cli/exit_code.h"
#include "cli/follow.h"
#include "shims/batch_options.h"
#include "shims/call.h"
#include "shims/step.h"
#include "shims/submission.h"

namespace gpu_platform::shims {

namespace {

constexpr std::string_view kSynopsis = "[options] COMMAND [ARGUMENT…]";

// In a job that came through the shims; other jobs have no SLURM_* variables, and srun makes jobs
// of its own there.
bool is_inside(const Variables& variables) {
  return variables.contains("SLURM_JOB_ID") &&
         variable(variables, "SLURM_JOB_ID") == variable(variables, "GPU_PLATFORM_JOB_ID");
}

Files files_of(const Settings& settings) {
  return {settings.value("output"), settings.value("error"), settings.value("input"),
          settings.value("open-mode") == "append"};
}

// A step has what the job has; only its number of tasks is its own.
base::Result<std::uint32_t> tasks_of(const Settings& settings, const Variables& variables) {
  std::vector<std::string> ignored;
  TRY_ASSIGN(const Resources resources, resources_of(settings, ignored));
  const auto gpus = parse_number(variable(variables, "SLURM_GPUS"), 1);
  if (resources.gpus.count > gpus.value_or(0)) {
    return base::fail(base::ErrorCode::kFailedPrecondition,
                      fmt::format("the step asks for {} GPUs and the job has {}",
                                  resources.gpus.count, gpus.value_or(0)));
  }
  if (settings.has("ntasks") || settings.has("ntasks-per-node") || settings.has("ntasks-per-gpu"))
    return resources.tasks;
  const auto of_job = parse_number(variable(variables, "SLURM_NTASKS"), 1);
  return of_job.value_or(1);
}

int run_inside(Call& call, const Settings& settings, const std::vector<std::string>& command,
               Variables variables) {
  if (settings.has("signal")) call.warn("--signal is ignored: it belongs to the submission");
  const auto tasks = tasks_of(settings, variables);
  if (!tasks) return call.fail(tasks.error());
  if (settings.has("cpus-per-task"))
    variables["SLURM_CPUS_PER_TASK"] = settings.value("cpus-per-task");
  const std::string& selection = settings.value("export");
  if (!selection.empty() && selection != "ALL") {
    Variables chosen = exported(selection, variables);
    for (const auto& [name, value] : variables) {
      if (name.starts_with("SLURM") || name.starts_with("GPU_PLATFORM_") ||
          name.starts_with("CUDA_")) {
        chosen.insert_or_assign(name, value);
      }
    }
    variables = std::move(chosen);
  }
  if (settings.has("chdir") && ::chdir(settings.value("chdir").c_str()) != 0) {
    return call.fail(fmt::format("--chdir: {}: {}", settings.value("chdir"), std::strerror(errno)));
  }
  const auto code = run_step({*tasks, files_of(settings), command}, variables);
  return code ? *code : call.fail(code.error());
}

// A job of its own, followed to its end.
int run_outside(Call& call, const Settings& settings, const std::vector<std::string>& command) {
  auto client = call.client();
  if (!client) return 1;
  Work work;
  work.step = "job-step";
  work.name = command.front().substr(command.front().rfind('/') + 1);
  work.words = command;
  if (const auto put = put_files(settings, false, work); !put) return call.fail(put.error());
  const auto body = job_request(call, *client, settings, work);
  if (!body) return call.fail(body.error());
  const auto id = submit(call, *client, *body);
  if (!id) return id.error();
  if (!settings.has("quiet"))
    call.console().err(fmt::format("srun: job {} queued and waiting for resources\n", *id));
  cli::Interrupts interrupts(call.console(), *client, *id);
  if (!work.fields.contains("output")) {
    const auto failure = cli::follow_output(call.console(), *client, *id,
                                            {cli::OutputPlace::kNone, 0, false, true}, interrupts);
    if (failure) return call.fail(*failure);
  }
  const auto ended = cli::wait_for_end(call.console(), *client, *id, std::nullopt, interrupts);
  if (!ended) return call.fail(ended.error());
  const cli::Json& job = (*ended)->job;
  if (!cli::integer_at(job, "exit_code").has_value() || !cli::text_at(job, "reason").empty()) {
    call.console().err(fmt::format("srun: error: {}\n", cli::describe_end(job)));
  }
  const int code = cli::exit_code_of_job(job);
  return code == cli::kNoExitCode ? 1 : code;
}

}  // namespace

int srun(Call& call) {
  Settings settings;
  std::vector<std::string> warnings;
  const auto command = read_options({srun_options()}, call.words(), settings, warnings);
  if (!command) return call.fail(command.error());
  if (call.answered(settings, kSynopsis)) return 0;
  call.warn_all(warnings);
  if (command->empty())
    return call.fail(
        "no command: write it behind the options, as in srun --gpus=1 python train.py");
  Variables variables = variables_of(call.around().environment);
  if (is_inside(variables)) add_allocation_variables(variables);
  return is_inside(variables) ? run_inside(call, settings, *command, variables)
                              : run_outside(call, settings, *command);
}

}  // namespace gpu_platform::shims
