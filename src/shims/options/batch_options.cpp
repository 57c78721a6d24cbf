#include "shims/options/batch_options.h"

#include <algorithm>

#include <fmt/format.h>

#include "client/script_words.h"
#include "shims/options/common_options.h"

namespace gpu_platform::shims {

namespace {

constexpr auto kNothing = Take::kNothing;
constexpr auto kValue = Take::kValue;
constexpr auto kMayHaveValue = Take::kMayHaveValue;
constexpr auto kHonoured = Rule::kHonoured;
constexpr auto kAccepted = Rule::kAccepted;
constexpr auto kIgnored = Rule::kIgnored;
constexpr auto kRefused = Rule::kRefused;

constexpr std::string_view kMailEvents =
    "BEGIN, END, FAIL and TIME_LIMIT (both are failures), ALL, NONE; others are ignored, and "
    "without a notification command of the site all, with a warning";
constexpr std::string_view kMail =
    "for the site's notification command (execution.notify_command); without one it is ignored, "
    "with a warning";
constexpr std::string_view kOneJobEach =
    "programs of several parts run only in a job whose script has '#SBATCH hetjob' lines: submit "
    "one job for each, or name the programs in the file of --multi-prog";
constexpr std::string_view kPlacement =
    "the nodes of a job are placed as near to each other in the network as they can be";
constexpr std::string_view kBinding = "the platform binds a job to the CPUs next to its GPUs";
constexpr std::string_view kTasks = "give it to srun, which starts the tasks";
constexpr std::string_view kNoBundle = "name an image with --container-image";
constexpr std::string_view kNoNamedContainer =
    "a container ends with its job; an image is made elsewhere and is stored in a registry";
constexpr std::string_view kNoAllocation =
    "an allocation has no image: give it to sbatch, or to srun outside of an allocation";
constexpr std::string_view kNoNodes =
    "name the nodes with --nodelist, or ask for a type with --gres=gpu:TYPE:N";

// What sbatch and srun both know. input_variables.cpp has their variables.
constexpr Option kShared[] = {
    {"job-name", 'J', kValue, kHonoured, "", ""},
    {"output", 'o', kValue, kHonoured, "%j %A %a %x %u %N %n %t %s %r %%; slurm-%j.out by default",
     ""},
    {"error", 'e', kValue, kHonoured, "", ""},
    {"input", 'i', kValue, kHonoured, "srun also takes all, none or the number of a task", ""},
    {"open-mode", 0, kValue, kHonoured, "append or truncate", ""},
    {"time", 't', kValue, kHonoured,
     "every form of Slurm; UNLIMITED is the site's default, with a warning", ""},
    {"signal", 0, kValue, kHonoured, "for the steps; with B: only for the batch shell", ""},
    {"nodes", 'N', kValue, kHonoured, "a range is its fewest nodes that do, with a warning", ""},
    {"ntasks", 'n', kValue, kHonoured, "", ""},
    {"ntasks-per-node", 0, kValue, kHonoured, "also --tasks-per-node", ""},
    {"ntasks-per-gpu", 0, kValue, kHonoured, "", ""},
    {"cpus-per-task", 'c', kValue, kHonoured,
     "without it a job with GPUs has the node's share of CPUs", ""},
    {"cpus-per-gpu", 0, kValue, kHonoured, "", ""},
    {"mem", 0, kValue, kHonoured, "0 is the node's share, with a warning", ""},
    {"mem-per-cpu", 0, kValue, kHonoured, "", ""},
    {"mem-per-gpu", 0, kValue, kHonoured, "", ""},
    {"gres", 0, kValue, kHonoured,
     "gpu[:TYPE]:N on each node, or a part of one GPU: shard:N, mps:N; others are ignored, with a "
     "warning",
     ""},
    {"gpus", 'G', kValue, kHonoured,
     "without a number of nodes on the fewest that hold them in equal parts", ""},
    {"gpus-per-node", 0, kValue, kHonoured, "", ""},
    {"gpus-per-task", 0, kValue, kHonoured, "", ""},
    {"gpus-per-socket", 0, kValue, kHonoured,
     "needs --sockets-per-node: N for each socket of a node; the platform "
     "chooses the sockets, by NVLink and NUMA",
     ""},
    {"constraint", 'C', kValue, kHonoured,
     "gpu, or types of GPU as TYPE|TYPE; other features are refused", ""},
    {"partition", 'p', kValue, kHonoured,
     "a partition of the site; the first of several whose limits the job keeps", ""},
    {"account", 'A', kValue, kHonoured, "the job's team", ""},
    {"qos", 'q', kValue, kHonoured, "a QOS of the site; else critical, high, medium or low", ""},
    {"nice", 0, kMayHaveValue, kHonoured, "above zero: priority low", ""},
    {"comment", 0, kValue, kHonoured, "", ""},
    {"chdir", 'D', kValue, kHonoured, "", ""},
    {"export", 0, kValue, kHonoured, "ALL, NONE, names and NAME=VALUE; PATH is always passed on",
     ""},
    {"quiet", 'Q', kNothing, kHonoured, "", ""},
    {"no-kill", 'k', kMayHaveValue, kIgnored, "a job that loses a node is queued again", ""},
    {"oversubscribe", 's', kNothing, kIgnored, "the job shares its node, not its CPUs", ""},
    {"mail-type", 0, kValue, kHonoured, kMailEvents, ""},
    {"mail-user", 0, kValue, kHonoured, kMail, ""},
    {"reservation", 0, kValue, kHonoured, "one, by name", ""},
    {"gpu-freq", 0, kValue, kIgnored, "the administrator sets the clocks", ""},
    {"gres-flags", 0, kValue, kIgnored, kBinding, ""},
    {"distribution", 'm', kValue, kHonoured,
     "block, cyclic or plane=N; text after a colon changes nothing", ""},
    {"mem-bind", 0, kValue, kIgnored, kBinding, ""},
    {"hint", 0, kValue, kIgnored, kBinding, ""},
    {"threads-per-core", 0, kValue, kIgnored, kBinding, ""},
    {"ntasks-per-core", 0, kValue, kIgnored, kBinding, ""},
    {"ntasks-per-socket", 0, kValue, kIgnored, kBinding, ""},
    {"sockets-per-node", 0, kValue, kHonoured,
     "used with --gpus-per-socket; else ignored, with a warning", ""},
    {"cores-per-socket", 0, kValue, kIgnored, kBinding, ""},
    {"core-spec", 'S', kValue, kIgnored, kBinding, ""},
    {"mincpus", 0, kValue, kIgnored, "set the number of CPUs with -c", ""},
    {"tmp", 0, kValue, kRefused,
     "the platform does not count local disk; choose nodes with -w, or leave it out", ""},
    {"switches", 0, kValue, kIgnored, kPlacement, ""},
    {"network", 0, kValue, kIgnored, kPlacement, ""},
    {"contiguous", 0, kNothing, kIgnored, kPlacement, ""},
    {"use-min-nodes", 0, kNothing, kIgnored, kPlacement, ""},
    {"profile", 0, kValue, kIgnored, "nothing is sampled into files", ""},
    {"acctg-freq", 0, kValue, kIgnored, "nothing is sampled into files", ""},
    {"licenses", 'L', kValue, kRefused,
     "the platform has no licenses, so the job could start without one; leave it out", ""},
    {"propagate", 0, kMayHaveValue, kIgnored, "the platform sets the limits", ""},
    {"priority", 0, kValue, kIgnored, "use --qos=high, medium or low", ""},
    {"wckey", 0, kValue, kIgnored, "there are no wckeys", ""},
    {"spread-job", 0, kNothing, kIgnored, kPlacement, ""},
    {"deadline", 0, kValue, kHonoured,
     "a running job is not stopped at it, because none starts too late for it", ""},
    {"delay-boot", 0, kValue, kIgnored, "nodes are not booted for jobs", ""},
    {"power", 0, kValue, kIgnored, "the administrator sets power limits", ""},
    {"uid", 0, kValue, kRefused, "submit as that user", ""},
    {"gid", 0, kValue, kRefused, "submit as a user of that group", ""},
    {"dependency", 'd', kValue, kHonoured,
     "all must be met; a delay and ? are refused. A job whose dependency can never be met is "
     "cancelled",
     ""},
    {"begin", 'b', kValue, kHonoured, "", ""},
    {"hold", 'H', kNothing, kHonoured, "until scontrol release", ""},
    {"nodefile", 'F', kValue, kRefused, kNoNodes, ""},
    {"exclude", 'x', kValue, kHonoured, "", ""},
    {"cluster-constraint", 0, kValue, kRefused, "there is one cluster", ""},
    {"bb", 0, kValue, kRefused, "there are no burst buffers", ""},
    {"bbf", 0, kValue, kRefused, "there are no burst buffers", ""},
};

// Those of Slurm's plugin pyxis.
constexpr Option kContainer[] = {
    {"container", 0, kValue, kRefused, kNoBundle, ""},
    {"container-image", 0, kValue, kHonoured,
     "[docker://][REGISTRY#]NAME[:TAG]; the script or program runs in it. docs/containers.md", ""},
    {"container-mounts", 0, kValue, kHonoured, "SRC:DST[:ro],… of what the site lets be mounted",
     ""},
    {"container-workdir", 0, kValue, kHonoured, "", ""},
    {"container-env", 0, kValue, kHonoured,
     "variables of the caller that the container gets, besides those of --export=NAME,…", ""},
    {"container-mount-home", 0, kNothing, kHonoured, "", ""},
    {"no-container-mount-home", 0, kNothing, kAccepted, "", ""},
    {"container-entrypoint", 0, kNothing, kHonoured, "", ""},
    {"no-container-entrypoint", 0, kNothing, kAccepted, "", ""},
    {"container-entrypoint-log", 0, kNothing, kAccepted, "", ""},
    {"container-writable", 0, kNothing, kAccepted, "", ""},
    {"container-readonly", 0, kNothing, kRefused,
     "the site's rules define whether containers are ('writable none')", ""},
    {"container-remap-root", 0, kNothing, kRefused, "programs in an image run as the job's user",
     ""},
    {"no-container-remap-root", 0, kNothing, kAccepted, "", ""},
    {"container-name", 0, kValue, kRefused, kNoNamedContainer, ""},
    {"container-save", 0, kValue, kRefused, kNoNamedContainer, ""},
};

constexpr Option kSallocContainer[] = {
    {"container", 0, kValue, kRefused, kNoBundle, ""},
    {"container-image", 0, kValue, kRefused, kNoAllocation, ""},
    {"container-mounts", 0, kValue, kRefused, kNoAllocation, ""},
    {"container-workdir", 0, kValue, kRefused, kNoAllocation, ""},
    {"container-env", 0, kValue, kRefused, kNoAllocation, ""},
    {"container-mount-home", 0, kNothing, kRefused, kNoAllocation, ""},
    {"no-container-mount-home", 0, kNothing, kAccepted, "", ""},
    {"container-entrypoint", 0, kNothing, kRefused, kNoAllocation, ""},
    {"no-container-entrypoint", 0, kNothing, kAccepted, "", ""},
    {"container-entrypoint-log", 0, kNothing, kAccepted, "", ""},
    {"container-writable", 0, kNothing, kAccepted, "", ""},
    {"container-readonly", 0, kNothing, kRefused, kNoAllocation, ""},
    {"container-remap-root", 0, kNothing, kRefused, kNoAllocation, ""},
    {"no-container-remap-root", 0, kNothing, kAccepted, "", ""},
    {"container-name", 0, kValue, kRefused, kNoNamedContainer, ""},
    {"container-save", 0, kValue, kRefused, kNoNamedContainer, ""},
};

constexpr std::string_view kNoOvercommit =
    "the job has CPUs for all of its tasks; set fewer with -c or --ntasks";

constexpr Option kSbatchAlone[] = {
    {"overcommit", 'O', kNothing, kIgnored, kNoOvercommit, ""},
    {"test-only", 0, kNothing, kHonoured,
     "nothing is submitted; the answer is that of 'gpu-platform check'", ""},
    {"gpu-bind", 0, kValue, kHonoured, "for the job's steps", ""},
    {"cpu-bind", 0, kValue, kIgnored, kTasks, ""},
    {"array", 'a', kValue, kHonoured, "", ""},
    {"wrap", 0, kValue, kHonoured, "", ""},
    {"wait", 'W', kNothing, kHonoured, "", ""},
    {"parsable", 0, kNothing, kHonoured, "", ""},
    {"no-requeue", 0, kNothing, kHonoured,
     "an attempt after the first one ends at once with a message", ""},
    {"requeue", 0, kNothing, kAccepted, "", ""},
    {"wait-all-nodes", 0, kValue, kAccepted, "", ""},
    {"no-bell", 0, kNothing, kAccepted, "", ""},
    {"exclusive", 0, kMayHaveValue, kHonoured,
     "all GPUs and CPUs of the nodes; of unlike nodes those of the size with which it starts "
     "first; "
     "=user and =mcs are ignored, with a warning",
     ""},
    {"get-user-env", 0, kMayHaveValue, kIgnored,
     "the environment is that of the submission; a login shell (#!/bin/bash -l) "
     "reads the user's",
     ""},
    {"kill-on-invalid-dep", 0, kValue, kIgnored,
     "a job with a dependency that can never be met is always cancelled", ""},
    {"nodelist", 'w', kValue, kHonoured, "all of them and no others, so as many as the job's nodes",
     ""},
};

constexpr Option kSrunAlone[] = {
    {"overcommit", 'O', kNothing, kHonoured, "in a job: tasks may share the step's CPUs", ""},
    {"test-only", 0, kNothing, kHonoured,
     "nothing is submitted; the answer is that of 'gpu-platform check'", ""},
    {"unbuffered", 'u', kNothing, kHonoured,
     "tasks write to a terminal, so that programs write line by line", ""},
    {"gpu-bind", 0, kValue, kHonoured,
     "single:N, per_task:N, map_gpu:LIST, none, closest; mask_gpu is refused", ""},
    {"kill-on-bad-exit", 'K', kMayHaveValue, kHonoured, "the other tasks are killed", ""},
    {"exact", 0, kNothing, kHonoured, "the step has only the CPUs that it asks for", ""},
    {"overlap", 0, kNothing, kHonoured, "starts at once and shares the resources of other steps",
     ""},
    {"exclusive", 0, kMayHaveValue, kHonoured, "in a job as --exact; outside as for sbatch", ""},
    {"immediate", 'I', kMayHaveValue, kHonoured,
     "the longest wait: in a job for its resources, outside of one for its start", ""},
    {"nodelist", 'w', kValue, kHonoured, "in a job: nodes of the job", ""},
    {"wait", 'W', kValue, kHonoured, "the other tasks are killed this long after the first end",
     ""},
    {"label", 'l', kNothing, kHonoured, "", ""},
    {"relative", 'r', kValue, kHonoured, "the first N nodes are skipped", ""},
    {"cpu-bind", 0, kValue, kHonoured,
     "cores, threads, rank, map_cpu:LIST, mask_cpu:LIST, none, verbose; others are refused", ""},
    {"quit-on-interrupt", 0, kNothing, kHonoured, "", ""},
    {"disable-status", 'X', kNothing, kHonoured, "", ""},
    {"threads", 'T', kValue, kAccepted, "", ""},
    {"preserve-env", 'E', kNothing, kAccepted, "", ""},
    {"bcast", 0, kMayHaveValue, kRefused, "copy the program with sbcast and name the copy", ""},
    {"task-prolog", 0, kValue, kRefused, "run it and the command with 'sh -c'", ""},
    {"task-epilog", 0, kValue, kRefused, "run it after the command with 'sh -c'", ""},
    {"x11", 0, kMayHaveValue, kRefused, "there is no X11 forwarding; 'ssh -X' has it", ""},
    {"mpi", 0, kValue, kIgnored, "srun has no MPI launcher: use mpirun", ""},
    {"pty", 0, kMayHaveValue, kHonoured, "one task", ""},
    {"multi-prog", 0, kNothing, kHonoured, "the file has at most 64 KiB", ""},
    {"jobid", 0, kValue, kHonoured, "a step in a running job of the same user", ""},
    {"het-group", 0, kValue, kHonoured, "in a job of several parts, which are alike: 0,1 or 0-1",
     ""},
};

constexpr Option kSallocAlone[] = {
    {"overcommit", 'O', kNothing, kIgnored, kNoOvercommit, ""},
    {"no-shell", 0, kNothing, kHonoured, "", ""},
    {"kill-command", 'K', kMayHaveValue, kHonoured,
     "the signal for the command when the allocation ends first", ""},
    {"nodelist", 'w', kValue, kHonoured, "all of them and no others, so as many as the job's nodes",
     ""},
    {"bell", 0, kNothing, kHonoured, "when the allocation is granted, on a terminal", ""},
    {"no-bell", 0, kNothing, kAccepted, "", ""},
    {"wait-all-nodes", 0, kValue, kAccepted, "", ""},
    {"gpu-bind", 0, kValue, kHonoured, "for the job's steps", ""},
    {"cpu-bind", 0, kValue, kIgnored, kTasks, ""},
    {"exclusive", 0, kMayHaveValue, kHonoured,
     "all GPUs and CPUs of the nodes; of unlike nodes those of the size with which it starts "
     "first; "
     "=user and =mcs are ignored, with a warning",
     ""},
    {"immediate", 'I', kMayHaveValue, kHonoured, "the longest wait for the start", ""},
    {"get-user-env", 0, kMayHaveValue, kIgnored, "the environment is that of the submission", ""},
    {"x11", 0, kMayHaveValue, kRefused, "there is no X11 forwarding; 'ssh -X' has it", ""},
};

constexpr auto kSbatch =
    joined(kShared, kContainer, kSbatchAlone, kVerboseOption, kHelpOption, kCommonOptions);
constexpr auto kSrun =
    joined(kShared, kContainer, kSrunAlone, kVerboseOption, kHelpOption, kCommonOptions);
constexpr auto kSalloc =
    joined(kShared, kSallocContainer, kSallocAlone, kVerboseOption, kHelpOption, kCommonOptions);

constexpr std::string_view kDirective = "#SBATCH";

}  // namespace

std::span<const Option> sbatch_options() {
  return kSbatch;
}

std::span<const Option> srun_options() {
  return kSrun;
}

std::span<const Option> salloc_options() {
  return kSalloc;
}

base::Status read_directives(std::string_view script, std::vector<Settings>& parts,
                             std::vector<std::string>& warnings) {
  if (parts.empty()) parts.emplace_back();
  TRY_ASSIGN(const auto lines, client::option_lines(script, {kDirective}));
  for (const client::OptionLine& line : lines) {
    if (line.words.front() == "hetjob" || line.words.front() == "packjob") {
      parts.emplace_back();
      continue;
    }
    const std::string where = fmt::format("line {}", line.number);
    const Reading reading{kSbatch, Unknown::kWarn, Order::kMixed, where};
    TRY_ASSIGN(const auto rest, read_options(reading, line.words, parts.back(), warnings));
    if (!rest.empty())
      warnings.push_back(
          fmt::format("{}: '{}' is not an option and is ignored", where, rest.front()));
  }
  return {};
}

base::Result<std::vector<std::string>> read_parts(std::span<const Option> table,
                                                  std::vector<std::string> words,
                                                  std::vector<Settings>& parts,
                                                  std::vector<std::string>& warnings) {
  for (std::size_t part = 0;; ++part) {
    if (part == parts.size()) parts.emplace_back();
    Settings own;
    TRY_ASSIGN(words, read_options({table}, words, own, warnings));
    for (const auto& [name, value] : own.all()) parts[part].set(Option{name}, value);
    if (words.empty() || words.front() != ":") return words;
    words.erase(words.begin());
  }
}

base::Error several_parts() {
  return {base::ErrorCode::kFailedPrecondition, std::string(kOneJobEach), {}};
}

base::Status check_script(std::string_view script) {
  if (!script.starts_with("#!")) {
    return base::invalid({},
                         "this does not look like a batch script: the first line must start with "
                         "#! and the path of an "
                         "interpreter, as in #!/bin/sh");
  }
  if (script.find('\0') != std::string_view::npos) {
    return base::invalid({}, "this does not look like a batch script: it contains a NUL byte");
  }
  if (script.find("\r\n") != std::string_view::npos)
    return base::invalid({}, "the script has DOS line ends (\\r\\n); dos2unix converts them");
  if (client::interpreter_of(script).empty())
    return base::invalid({}, "the script's first line names no interpreter");
  return {};
}

}  // namespace gpu_platform::shims
