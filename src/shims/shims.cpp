#include "shims/shims.h"

#include <fmt/format.h>

#include "shims/call.h"

namespace gpu_platform::shims {

namespace {

struct Command {
  std::string_view name;
  int (*run)(Call& call);
};

constexpr Command kCommands[] = {
    {"sbatch", sbatch},         {"srun", srun},         {"squeue", squeue},
    {"scancel", scancel},       {"sinfo", sinfo},       {"sacct", sacct},
    {"scontrol", scontrol},     {"sacctmgr", sacctmgr}, {"sshare", sshare},
    {"batch-step", batch_step}, {"job-step", job_step},
};

std::string base_name(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

bool is_command(std::string_view name) {
  return std::ranges::find(kCommands, name, &Command::name) != std::end(kCommands);
}

}  // namespace

int run_in(const cli::Surroundings& surroundings, const std::string& name,
           const std::vector<std::string>& words) {
  cli::Console console(surroundings);
  Call call(name, words, console);
  const auto command = std::ranges::find(kCommands, name, &Command::name);
  if (command != std::end(kCommands)) return command->run(call);
  console.err(
      fmt::format("'{}' is no command of Slurm that is here: sbatch, srun, squeue, scancel, sinfo, "
                  "sacct, scontrol, sacctmgr and sshare are, each through a link of that name or "
                  "as the first argument\n",
                  name));
  return 1;
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
  return run_in(cli::surroundings_of_process(), name, words);
}

}  // namespace gpu_platform::shims
