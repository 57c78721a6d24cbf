#include "shims/shims.h"

#include <algorithm>

#include <fmt/format.h>

#include "shims/command_call.h"
#include "shims/options/batch_options.h"

namespace gpu_platform::shims {

namespace {

struct NamedCommand {
  std::string_view name;
  int (*run)(CommandCall& call);
  std::span<const Option> (*options)() = nullptr;  // none: it is no command for people
};

constexpr NamedCommand kAllCommands[] = {
    {"sbatch", sbatch, sbatch_options},
    {"srun", srun, srun_options},
    {"squeue", squeue, squeue_options},
    {"scancel", scancel, scancel_options},
    {"sinfo", sinfo, sinfo_options},
    {"sacct", sacct, sacct_options},
    {"sstat", sstat, sstat_options},
    {"scontrol", scontrol, scontrol_options},
    {"sacctmgr", sacctmgr, sacctmgr_options},
    {"sshare", sshare, sshare_options},
    {"seff", seff, seff_options},
    {"sprio", sprio, sprio_options},
    {"sdiag", sdiag, sdiag_options},
    {"sreport", sreport, sreport_options},
    {"batch-step", batch_step},
    {"job-step", job_step},
    {"salloc", salloc, salloc_options},
    {"sbcast", sbcast, sbcast_options},
    {"sattach", sattach, sattach_options},
    {"hold-allocation", hold_allocation},
    {"enter-job", enter_job},
    {"live-usage", live_usage},
};

std::string base_name(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

bool is_command(std::string_view name) {
  return std::ranges::find(kAllCommands, name, &NamedCommand::name) != std::end(kAllCommands);
}

}  // namespace

int run_in(const client::ProcessEnvironment& process_environment, const std::string& name,
           const std::vector<std::string>& words) {
  client::Console console(process_environment);
  CommandCall call(name, words, console);
  const auto command = std::ranges::find(kAllCommands, name, &NamedCommand::name);
  if (command != std::end(kAllCommands)) return command->run(call);
  console.err(fmt::format(
      "'{}' is not one of the Slurm commands here: sbatch, srun, salloc, sattach, sbcast, "
      "squeue, scancel, sinfo, sacct, sstat, scontrol, sacctmgr, sshare, seff, sprio, sdiag and "
      "sreport "
      "are, each "
      "through a link of that name or "
      "as the first argument\n",
      name));
  return 1;
}

std::vector<CommandOptions> option_tables() {
  std::vector<CommandOptions> tables;
  for (const NamedCommand& command : kAllCommands)
    if (command.options != nullptr) tables.push_back({command.name, command.options()});
  return tables;
}

int run(int argc, char** argv) {
  std::vector<std::string> words(argv, argv + argc);
  if (words.empty()) words.emplace_back();
  std::string name = base_name(words.front());
  words.erase(words.begin());
  if (!is_command(name) && !words.empty()) {
    name = words.front();
    words.erase(words.begin());
  }
  return run_in(client::environment_of_process(), name, words);
}

}  // namespace gpu_platform::shims
