#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <optional>

#include <fmt/format.h>

#include "cli/jobs/attach.h"
#include "client/exit_code.h"
#include "client/follow.h"
#include "model/job_spec.h"
#include "shims/command_call.h"
#include "shims/options/batch_options.h"
#include "shims/options/input_variables.h"
#include "shims/steps/own_job.h"
#include "shims/steps/rendezvous.h"
#include "shims/steps/step.h"
#include "shims/steps/step_entry.h"
#include "shims/steps/step_plan.h"
#include "shims/steps/step_rules.h"
#include "shims/steps/step_shares.h"
#include "shims/submission/container_options.h"
#include "shims/submission/het_job.h"
#include "shims/submission/start_check.h"
#include "shims/submission/submission.h"

namespace gpu_platform::shims {

namespace {

constexpr std::string_view kNoStepInImage =
    "--container-image: a step of a job cannot have an image of its own: give it to sbatch, which "
    "runs its script there, or to srun outside of the job";
constexpr std::string_view kSrunSynopsis = "[options] COMMAND [ARGUMENT…]";

base::Result<std::optional<std::int64_t>> limit_of(const Settings& settings) {
  if (!settings.has("time")) return std::optional<std::int64_t>();
  const auto limit = parse_time_limit(settings.value("time"));
  if (!limit) return base::invalid("--time", limit.error().message);
  if (!limit->has_value()) return std::optional<std::int64_t>();
  return std::optional(base::whole_milliseconds(**limit) / 1000);
}

// What the job was submitted with counts for its steps where they do not say otherwise.
void add_defaults(Settings& settings, const Variables& variables) {
  const auto add = [&](const char* option, std::string_view value) {
    if (!value.empty()) settings.set(Option{option}, std::string(value));
  };
  const bool has_tasks =
      settings.has("ntasks") || settings.has("ntasks-per-node") || settings.has("ntasks-per-gpu");
  if (!has_tasks) add("ntasks", variable(variables, "SLURM_NTASKS"));
  const bool has_gpus = settings.has("gpus") || settings.has("gres") ||
                        settings.has("gpus-per-node") || settings.has("gpus-per-task");
  if (!has_gpus) add("gpus-per-task", variable(variables, "SLURM_GPUS_PER_TASK"));
}

// Waits for room, unless the step shares what it uses (--overlap).
base::Result<std::vector<NodeShare>> take_share(CommandCall& call, const Settings& settings,
                                                const StepPlan& plan, StepShares& shares) {
  if (settings.has("overlap")) return first_shares(plan);
  TRY_ASSIGN(const auto start_timeout, start_timeout_of(settings));
  const base::Instant begin = call.around().steady();
  for (bool was_told = false;;) {
    TRY_ASSIGN(auto taken, shares.take(plan.rooms, plan.wishes));
    if (taken) return std::move(*taken);
    std::optional<std::int64_t> left;
    if (start_timeout)
      left = base::whole_milliseconds(*start_timeout - (call.around().steady() - begin));
    if (left && *left <= 0)
      return base::fail(base::ErrorCode::kFailedPrecondition,
                        "other steps of the job have its GPUs, CPUs or memory (--immediate)");
    if (!was_told && !settings.has("quiet")) {
      call.console().err(
          "srun: the step waits: other steps of the job have its GPUs, CPUs or memory (--overlap "
          "shares them, --exact takes only what the step asks for)\n");
    }
    was_told = true;
    TRY(shares.wait_for_an_end(left));
  }
}

// The CPUs of the step, of all those that its tasks may be bound to; all where none are counted.
void put_cpus_of_step(const std::vector<NodeShare>& shares, Step& step) {
  if (step.cpus.empty() || shares.front().cpus.empty()) return;
  Cpus cpus;
  for (const std::uint32_t place : shares.front().cpus) cpus.push_back(step.cpus[place]);
  step.cpus = std::move(cpus);
}

int run_inside(CommandCall& call, Settings settings, const HetStep& het, Variables variables) {
  if (wants_container(settings)) return call.fail(std::string(kNoStepInImage));
  call.warn_all(container_warnings(settings));
  for (const char* name : {"signal", "mail-type", "mail-user"}) {
    if (!settings.has(name)) continue;
    call.warn(fmt::format("--{} is ignored: it belongs to the submission", name));
  }
  add_defaults(settings, variables);
  Step step;
  step.command = het.command;
  const std::vector<StepNode> nodes = nodes_of_job(variables);
  const auto plan = plan_step(settings, nodes);
  if (!plan) return call.fail(plan.error());
  step.tasks = plan->resources.tasks;
  step.cpus_per_task = plan->resources.cpus_per_task.value_or(1);
  auto binding = gpu_binding_of(settings, plan->resources);
  if (!binding) return call.fail(binding.error());
  step.binding = std::move(*binding);
  const auto seconds = limit_of(settings);
  if (!seconds) return call.fail(seconds.error());
  step.seconds = *seconds;
  std::vector<std::string> warnings;
  if (const auto put = put_task_rules(settings, variables, step, warnings); !put)
    return call.fail(put.error());
  if (!het.programs.empty()) step.programs = het.programs;
  if (settings.has("pty")) {
    if (step.tasks > 1) return call.fail("--pty: a terminal is for one task: add -n1");
    if (::isatty(call.around().in_fd) != 1)
      warnings.emplace_back("--pty: standard input is not a terminal, so the program has none");
  }
  call.warn_all(warnings);
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
  // Held until the step has ended.
  std::optional<StepShares> shares;
  if (const std::string path(variable(variables, "GPU_PLATFORM_STEP_SHARES")); !path.empty()) {
    auto opened = StepShares::open(path);
    if (!opened) return call.fail(opened.error());
    shares.emplace(std::move(*opened));
    const auto id = shares->next_step();
    if (!id) return call.fail(id.error());
    step.id = *id;
    const auto taken = take_share(call, settings, *plan, *shares);
    if (!taken) return call.fail(taken.error());
    step.places = places_of(*plan, nodes, *taken);
    step.amounts = amounts_of(*plan, nodes);
    put_cpus_of_step(*taken, step);
  } else {
    step.places = places_of(*plan, nodes, first_shares(*plan));
  }
  const auto code = run_step(std::move(step), variables);
  return code ? *code : call.fail(code.error());
}

// The job's terminal, where the caller has one too.
std::optional<model::TerminalSize> put_terminal(CommandCall& call, const Settings& settings,
                                                Work& work) {
  if (!settings.has("pty")) return std::nullopt;
  work.fields.set_kind(v1::JOB_KIND_INTERACTIVE);
  const auto terminal = client::terminal_size(call.around());
  if (!terminal) {
    call.warn("--pty: standard input is not a terminal, so the program has none");
    return std::nullopt;
  }
  work.fields.set_terminal(true);
  work.fields.set_columns(terminal->columns);
  work.fields.set_rows(terminal->rows);
  return terminal;
}

// One program, as it is: nothing of ours is in the image that could start more.
base::Status check_contained(CommandCall& call, const Settings& settings,
                             const std::string& rules) {
  std::vector<std::string> warnings;
  TRY_ASSIGN(const Resources resources, resources_of(settings, warnings));
  if (resources.tasks > 1) {
    return base::invalid("--ntasks", "a program in an image is one task: submit an array");
  }
  if (!rules.empty())
    call.warn("options that say how tasks run are ignored: a program in an image runs as it is");
  return {};
}

// Files that the job's first process opens, because the other streams are srun's own.
void open_files_in_job(const Settings& settings, Work& work) {
  if (work.fields.has_output()) work.variables["SLURM_SHIM_OUTPUT"] = settings.value("output");
  if (work.fields.has_error()) work.variables["SLURM_SHIM_ERROR"] = settings.value("error");
  work.fields.clear_output();
  work.fields.clear_error();
  work.fields.clear_open_mode();
}

// Whether the streams of srun can be lent to the job: both are on one machine, and the job's first
// process is ours.
bool can_lend_streams(const Settings& settings, const client::Client& client) {
  return !wants_container(settings) &&
         std::ranges::none_of(client.servers(), &http::Server::is_network);
}

// Whether there is anything to send as a job's input.
bool has_input(CommandCall& call, const Settings& settings) {
  struct stat found = {};
  struct stat null = {};
  if (settings.has("input") || ::fstat(call.around().in_fd, &found) != 0) return false;
  return ::stat("/dev/null", &null) != 0 || found.st_rdev != null.st_rdev ||
         !S_ISCHR(found.st_mode);
}

// A job on another machine, or in an image. Its output is followed, which does not tell standard
// error from standard output.
int follow_from_afar(CommandCall& call, client::Client& client, const Settings& settings,
                     const Work& work, const std::string& id) {
  if (!settings.has("quiet"))
    call.console().err(fmt::format("srun: job {} queued and waiting for resources\n", id));
  client::Interrupts interrupts(call.console(), client, id);
  if (!work.fields.has_output()) {
    const auto failure =
        work.fields.has_takes_input()
            ? cli::follow_with_input(call.console(), client, id, interrupts)
            : client::follow_output(call.console(), client, id,
                                    {client::OutputPlace::kNone, 0, false, true}, interrupts);
    if (failure && !client::tell_of_unshown_output(call.console(), *failure))
      return call.fail(*failure);
  }
  return srun_code(call, client::wait_for_end(call.console(), client, id, std::nullopt, interrupts),
                   false);
}

base::Result<std::string> checked_rules(CommandCall& call, Settings& settings,
                                        const std::vector<std::string>& command) {
  TRY_ASSIGN(std::string rules, carried_rules(settings, command.front()));
  if (wants_container(settings)) TRY(check_contained(call, settings, rules));
  return rules;
}

// A job of its own, followed to its end.
int run_outside(CommandCall& call, Settings settings, const std::vector<std::string>& command) {
  auto client = call.client();
  if (!client) return 1;
  const bool reads_rules = settings.has("input");
  const auto rules = checked_rules(call, settings, command);
  if (!rules) return call.fail(rules.error());
  const auto start_timeout = start_timeout_of(settings);
  if (!start_timeout) return call.fail(start_timeout.error());
  Work work;
  work.step = "job-step";
  work.name = command.front().substr(command.front().rfind('/') + 1);
  work.words = command;
  if (!rules->empty()) work.variables["SLURM_SHIM_RULES"] = *rules;
  if (const auto put = put_files(settings, false, work); !put) return call.fail(put.error());
  const auto terminal = put_terminal(call, settings, work);
  std::optional<RendezvousPlace> place;
  int signals = -1;
  if (!terminal && can_lend_streams(settings, *client)) {
    auto opened = RendezvousPlace::open();
    if (!opened) return call.fail(opened.error());
    place.emplace(std::move(*opened));
    work.variables["SLURM_SHIM_PLACE"] = place->name();
    open_files_in_job(settings, work);
    signals = watch_srun_signals();
  } else if (!terminal && !reads_rules && has_input(call, settings)) {
    work.fields.set_takes_input(true);
  }
  const auto spec = job_request(call, *client, settings, work);
  if (!spec) return call.fail(spec.error());
  if (settings.has("test-only")) return tell_start(call, *client, *spec);
  const auto id = submit(call, *client, *spec);
  if (!id) return id.error();
  const OwnJobRules own{settings.has("quiet"), *start_timeout};
  if (place) return stay_with_own_job(call, *client, *place, signals, *id, own);
  std::optional<SignalsFromAfar> passed_on;
  if (!terminal) passed_on.emplace(call, *id);
  if (*start_timeout) {
    client::Interrupts interrupts(call.console(), *client, *id);
    if (!starts_in_time(*client, *id, **start_timeout, call, interrupts))
      return call.fail("Unable to allocate resources: Requested nodes are busy");
  }
  if (!terminal) return follow_from_afar(call, *client, settings, work, *id);
  if (!settings.has("quiet"))
    call.console().err(fmt::format("srun: job {} queued and waiting for resources\n", *id));
  return cli::attach_to(call.console(), *client, {*id, terminal, true});
}

}  // namespace

int srun(CommandCall& call) {
  return srun_as(call, variables_of(call.around().environment));
}

int srun_as(CommandCall& call, Variables variables) {
  Settings command_line;
  std::vector<std::string> warnings;
  const auto command = read_options({srun_options()}, call.words(), command_line, warnings);
  if (!command) return call.fail(command.error());
  if (call.answered(command_line, kSrunSynopsis)) return 0;
  if (command->empty())
    return call.fail("no command: write it after the options, as in srun --gpus=1 python train.py");
  const bool inside = is_inside(variables);
  const std::string& asked = command_line.value("jobid");
  const bool is_here = inside && (asked.empty() || asked == variable(variables, "SLURM_JOB_ID"));
  const std::string other = asked.empty() ? allocation_of(variables) : asked;
  // Inside, srun reads the words again, and the variables, and tells the warnings.
  if (!inside && !other.empty() && wants_container(command_line))
    return call.fail(std::string(kNoStepInImage));
  if (!inside && !other.empty())
    return step_from_outside(call, other, call.words(), command_line.has("pty"));
  if (!is_here && !asked.empty())
    return call.fail("--jobid: a step of another job cannot be started from within this one");
  Settings settings;
  if (const auto read =
          read_input_variables(is_here ? VariablesOf::kSrunInJob : VariablesOf::kSrun,
                               srun_options(), environment_of(variables), settings, warnings);
      !read)
    return call.fail(read.error());
  for (const auto& [name, value] : command_line.all()) settings.set(Option{name}, value);
  call.warn_all(warnings);
  std::vector<std::string> told;
  if (!is_here && settings.has("het-group")) return call.fail(several_parts());
  const auto step = joined_step(variables, *command, settings, told);
  if (!step) return call.fail(step.error());
  call.warn_all(told);
  if (!is_here || settings.has("test-only"))
    return run_outside(call, std::move(settings), step->command);
  if (const auto put = put_het_group(variables, settings); !put) return call.fail(put.error());
  add_allocation_variables(variables);
  return run_inside(call, settings, *step, variables);
}

}  // namespace gpu_platform::shims
