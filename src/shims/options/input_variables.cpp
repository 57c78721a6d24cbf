#include "shims/options/input_variables.h"

#include <algorithm>
#include <optional>

namespace gpu_platform::shims {

namespace {

constexpr auto kToo = InJobs::kToo;

constexpr InputVariable kVariables[] = {
    {"account", "SBATCH_ACCOUNT", "SALLOC_ACCOUNT", "SLURM_ACCOUNT"},
    {"acctg-freq", "SBATCH_ACCTG_FREQ", "SALLOC_ACCTG_FREQ", "SLURM_ACCTG_FREQ", kToo},
    {"array", "SBATCH_ARRAY_INX", "", ""},
    {"bell", "", "SALLOC_BELL", ""},
    {"chdir", "", "", "SLURM_REMOTE_CWD", kToo},
    {"chdir", "", "", "SLURM_WORKING_DIR", kToo},
    {"clusters", "SBATCH_CLUSTERS", "SALLOC_CLUSTERS", "SLURM_CLUSTERS"},
    {"constraint", "SBATCH_CONSTRAINT", "SALLOC_CONSTRAINT", "SLURM_CONSTRAINT"},
    {"container", "SBATCH_CONTAINER", "SALLOC_CONTAINER", "SRUN_CONTAINER", kToo},
    {"core-spec", "SBATCH_CORE_SPEC", "SALLOC_CORE_SPEC", "SLURM_CORE_SPEC"},
    {"cpu-bind", "", "", "SLURM_CPU_BIND", kToo},
    {"cpus-per-gpu", "SBATCH_CPUS_PER_GPU", "SALLOC_CPUS_PER_GPU", "SLURM_CPUS_PER_GPU"},
    {"cpus-per-task", "", "", "SRUN_CPUS_PER_TASK", kToo},
    {"delay-boot", "SBATCH_DELAY_BOOT", "SALLOC_DELAY_BOOT", "SLURM_DELAY_BOOT"},
    {"dependency", "", "", "SLURM_DEPENDENCY"},
    {"distribution", "SBATCH_DISTRIBUTION", "", "SLURM_DISTRIBUTION", kToo},
    {"error", "SBATCH_ERROR", "", "SLURM_STDERRMODE", kToo},
    {"exact", "", "", "SLURM_EXACT", kToo},
    {"exclusive", "SBATCH_EXCLUSIVE", "SALLOC_EXCLUSIVE", "SLURM_EXCLUSIVE", kToo},
    {"export", "SBATCH_EXPORT", "", "SLURM_EXPORT_ENV", kToo},
    {"export", "", "", "SRUN_EXPORT_ENV", kToo},
    {"get-user-env", "SBATCH_GET_USER_ENV", "", ""},
    {"gpu-bind", "SBATCH_GPU_BIND", "SALLOC_GPU_BIND", "SLURM_GPU_BIND", kToo},
    {"gpu-freq", "SBATCH_GPU_FREQ", "SALLOC_GPU_FREQ", "SLURM_GPU_FREQ", kToo},
    {"gpus", "SBATCH_GPUS", "SALLOC_GPUS", "SLURM_GPUS"},
    {"gpus-per-node", "SBATCH_GPUS_PER_NODE", "SALLOC_GPUS_PER_NODE", "SLURM_GPUS_PER_NODE"},
    {"gpus-per-task", "SBATCH_GPUS_PER_TASK", "SALLOC_GPUS_PER_TASK", "SLURM_GPUS_PER_TASK"},
    {"gres", "SBATCH_GRES", "SALLOC_GRES", "SLURM_GRES"},
    {"gres", "", "", "SLURM_STEP_GRES", kToo},
    {"gres-flags", "SBATCH_GRES_FLAGS", "SALLOC_GRES_FLAGS", "SLURM_GRES_FLAGS"},
    {"hint", "SBATCH_HINT", "SALLOC_HINT", "SLURM_HINT", kToo},
    {"immediate", "", "SALLOC_IMMEDIATE", "SLURM_IMMEDIATE", kToo},
    {"input", "SBATCH_INPUT", "", "SLURM_STDINMODE", kToo},
    {"job-name", "SBATCH_JOB_NAME", "", "SLURM_JOB_NAME"},
    {"kill-command", "", "SALLOC_KILL_CMD", ""},
    {"kill-on-bad-exit", "", "", "SLURM_KILL_BAD_EXIT", kToo},
    {"label", "", "", "SLURM_LABELIO", kToo},
    {"mem", "SBATCH_MEM_PER_NODE", "SALLOC_MEM_PER_NODE", "SLURM_MEM_PER_NODE"},
    {"mem-bind", "SBATCH_MEM_BIND", "SALLOC_MEM_BIND", "SLURM_MEM_BIND", kToo},
    {"mem-per-cpu", "SBATCH_MEM_PER_CPU", "SALLOC_MEM_PER_CPU", "SLURM_MEM_PER_CPU"},
    {"mem-per-gpu", "SBATCH_MEM_PER_GPU", "SALLOC_MEM_PER_GPU", "SLURM_MEM_PER_GPU"},
    {"mpi", "", "", "SLURM_MPI_TYPE", kToo},
    {"network", "SBATCH_NETWORK", "SALLOC_NETWORK", "SLURM_NETWORK", kToo},
    {"no-bell", "", "SALLOC_NO_BELL", ""},
    {"no-kill", "SBATCH_NO_KILL", "SALLOC_NO_KILL", "SLURM_NO_KILL", kToo},
    {"no-requeue", "SBATCH_NO_REQUEUE", "", ""},
    {"nodes", "", "", "SLURM_NNODES"},
    {"nodes", "", "", "SLURM_JOB_NUM_NODES"},
    {"ntasks", "", "", "SLURM_NPROCS"},
    {"ntasks", "", "", "SLURM_NTASKS"},
    {"ntasks-per-core", "", "", "SLURM_NTASKS_PER_CORE"},
    {"ntasks-per-gpu", "", "", "SLURM_NTASKS_PER_GPU"},
    {"ntasks-per-node", "", "", "SLURM_NTASKS_PER_NODE"},
    {"ntasks-per-socket", "", "", "SLURM_NTASKS_PER_SOCKET"},
    {"open-mode", "SBATCH_OPEN_MODE", "", "SLURM_OPEN_MODE", kToo},
    {"output", "SBATCH_OUTPUT", "", "SLURM_STDOUTMODE", kToo},
    {"overcommit", "SBATCH_OVERCOMMIT", "SALLOC_OVERCOMMIT", "SLURM_OVERCOMMIT", kToo},
    {"overlap", "", "", "SLURM_OVERLAP", kToo},
    {"partition", "SBATCH_PARTITION", "SALLOC_PARTITION", "SLURM_PARTITION"},
    {"power", "SBATCH_POWER", "SALLOC_POWER", "SLURM_POWER"},
    {"profile", "SBATCH_PROFILE", "SALLOC_PROFILE", "SLURM_PROFILE", kToo},
    {"qos", "SBATCH_QOS", "SALLOC_QOS", "SLURM_QOS"},
    {"requeue", "SBATCH_REQUEUE", "", ""},
    {"reservation", "SBATCH_RESERVATION", "SALLOC_RESERVATION", "SLURM_RESERVATION"},
    {"signal", "SBATCH_SIGNAL", "SALLOC_SIGNAL", "SLURM_SIGNAL"},
    {"spread-job", "SBATCH_SPREAD_JOB", "SALLOC_SPREAD_JOB", "SLURM_SPREAD_JOB"},
    {"switches", "SBATCH_REQ_SWITCH", "SALLOC_REQ_SWITCH", "SLURM_REQ_SWITCH"},
    {"threads-per-core", "SBATCH_THREADS_PER_CORE", "SALLOC_THREADS_PER_CORE",
     "SLURM_THREADS_PER_CORE", kToo},
    {"time", "SBATCH_TIMELIMIT", "SALLOC_TIMELIMIT", "SLURM_TIMELIMIT", kToo},
    {"unbuffered", "", "", "SLURM_UNBUFFEREDIO", kToo},
    {"use-min-nodes", "SBATCH_USE_MIN_NODES", "SALLOC_USE_MIN_NODES", "SLURM_USE_MIN_NODES"},
    {"wait", "SBATCH_WAIT", "", "SLURM_WAIT", kToo},
    {"wait-all-nodes", "SBATCH_WAIT_ALL_NODES", "SALLOC_WAIT_ALL_NODES", ""},
    {"wckey", "SBATCH_WCKEY", "SALLOC_WCKEY", "SLURM_WCKEY"},
};

std::string_view name_for(VariablesOf command, const InputVariable& variable) {
  if (command == VariablesOf::kSbatch) return variable.sbatch;
  if (command == VariablesOf::kSalloc) return variable.salloc;
  const bool is_read = command == VariablesOf::kSrun || variable.in_jobs == InJobs::kToo;
  return is_read ? variable.srun : std::string_view();
}

// Of two entries with one name the first counts, as for getenv.
std::optional<std::string> value_of(std::string_view name,
                                    std::span<const std::string> environment) {
  for (const std::string& entry : environment) {
    if (entry.size() > name.size() && entry[name.size()] == '=' && entry.starts_with(name))
      return entry.substr(name.size() + 1);
  }
  return std::nullopt;
}

}  // namespace

std::span<const InputVariable> input_variables() {
  return kVariables;
}

bool is_read_in_jobs(std::string_view name) {
  return std::ranges::any_of(kVariables, [&](const InputVariable& variable) {
    return variable.in_jobs == InJobs::kToo && variable.srun == name;
  });
}

base::Status read_input_variables(VariablesOf command, std::span<const Option> table,
                                  std::span<const std::string> environment, Settings& settings,
                                  std::vector<std::string>& warnings) {
  for (const InputVariable& variable : kVariables) {
    const std::string_view name = name_for(command, variable);
    if (name.empty()) continue;
    const auto option = std::ranges::find(table, variable.option, &Option::name);
    const auto value = value_of(name, environment);
    if (!value || option == table.end()) continue;
    const Reading reading{table, Unknown::kError, Order::kMixed, std::string(name)};
    std::string word = "--" + std::string(variable.option);
    if (option->take != Take::kNothing) word += "=" + *value;
    TRY(read_options(reading, std::span(&word, 1), settings, warnings));
  }
  return {};
}

}  // namespace gpu_platform::shims
