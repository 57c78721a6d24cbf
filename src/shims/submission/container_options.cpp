#include "shims/submission/container_options.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "client/script_words.h"
#include "model/job_spec.h"
#include "shims/text/slurm_values.h"

namespace gpu_platform::shims {

namespace {

constexpr std::string_view kDockerHub = "docker.io";  // enroot's default
constexpr std::size_t kLargestContained = 96 * 1024;  // one argument of a program holds 128 KiB

// In the container, before the program: what is known only there, in the names that Slurm has for
// it. enroot needs /bin/sh in an image, too.
constexpr std::string_view kPreamble =
    "SLURM_JOB_ID=$GPU_PLATFORM_JOB_ID SLURM_JOB_NAME=$GPU_PLATFORM_JOB_NAME "
    "SLURM_JOB_NODELIST=$GPU_PLATFORM_NODE SLURM_CPUS_ON_NODE=$GPU_PLATFORM_CPUS; "
    "SLURM_JOBID=$SLURM_JOB_ID SLURM_NODELIST=$SLURM_JOB_NODELIST "
    "SLURMD_NODENAME=$SLURM_JOB_NODELIST SLURM_JOB_CPUS_PER_NODE=$SLURM_CPUS_ON_NODE; "
    "export SLURM_JOB_ID SLURM_JOB_NAME SLURM_JOB_NODELIST SLURM_CPUS_ON_NODE SLURM_JOBID "
    "SLURM_NODELIST SLURMD_NODENAME SLURM_JOB_CPUS_PER_NODE; "
    "if [ -n \"$GPU_PLATFORM_GPUS\" ]; then export SLURM_JOB_GPUS=\"$GPU_PLATFORM_GPUS\"; fi; "
    "if [ -n \"$GPU_PLATFORM_ARRAY_ID\" ]; then export "
    "SLURM_ARRAY_JOB_ID=\"$GPU_PLATFORM_ARRAY_ID\" "
    "SLURM_ARRAY_TASK_ID=\"$GPU_PLATFORM_ARRAY_INDEX\" "
    "SLURM_ARRAY_TASK_COUNT=\"$GPU_PLATFORM_ARRAY_COUNT\" "
    "SLURM_ARRAY_TASK_MIN=\"$GPU_PLATFORM_ARRAY_MIN\" "
    "SLURM_ARRAY_TASK_MAX=\"$GPU_PLATFORM_ARRAY_MAX\" "
    "SLURM_ARRAY_TASK_STEP=\"$GPU_PLATFORM_ARRAY_STEP\"; fi; "
    "exec \"$@\"";

std::string_view last_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

bool looks_like_registry(std::string_view part) {
  return part == "localhost" || part.find_first_of(".:") != std::string_view::npos;
}

// Shells and Python read a script from an argument; in the image there is no file of it.
bool takes_script_as_argument(std::string_view program) {
  const std::string_view name = last_name(program);
  constexpr std::string_view kShells[] = {"sh", "bash", "dash", "ash", "ksh", "zsh"};
  return std::ranges::find(kShells, name) != std::end(kShells) || name.starts_with("python");
}

base::Result<std::vector<std::string>> script_command(const Work& work) {
  std::vector<std::string> words = client::interpreter_of(work.script);
  const bool is_found_by_env = words.size() == 2 && last_name(words[0]) == "env";
  if (words.empty() || !takes_script_as_argument(is_found_by_env ? words[1] : words[0])) {
    return base::invalid("--container-image",
                         fmt::format("a script in an image is read by a shell or by python, and "
                                     "not by '{}': call that from a shell script",
                                     words.empty() ? "" : words.back()));
  }
  if (work.script.size() > kLargestContained) {
    return base::invalid("--container-image",
                         fmt::format("a script in an image has at most {} KiB; mount a larger one "
                                     "(--container-mounts) and call it",
                                     kLargestContained / 1024));
  }
  const bool is_python = last_name(words.back()).starts_with("python") ||
                         last_name(words.front()).starts_with("python");
  words.insert(words.end(), {"-c", work.script});
  // A shell takes its own name from there.
  words.insert(words.end(), work.words.begin() + (is_python ? 1 : 0), work.words.end());
  return words;
}

// The variables that --export and --container-env name, besides those of the job.
Variables container_variables(const Settings& settings, const Variables& callers,
                              const v1::JobSpec& spec) {
  Variables chosen;
  for (const auto& [name, value] : spec.environment()) {
    if (name.starts_with("SLURM_") && !name.starts_with("SLURM_SHIM_")) chosen[name] = value;
  }
  const auto take = [&](const std::string& name) {
    if (const auto found = callers.find(name); found != callers.end()) chosen[name] = found->second;
  };
  for (const std::string& item : comma_separated(settings.value("export"))) {
    const std::size_t equals = item.find('=');
    if (equals == std::string::npos) take(item);
    if (equals != std::string::npos && equals > 0)
      chosen[item.substr(0, equals)] = item.substr(equals + 1);
  }
  for (const std::string& name : comma_separated(settings.value("container-env"))) take(name);
  for (const char* const name : {"SLURM_JOB_NUM_NODES", "SLURM_NNODES"}) chosen[name] = "1";
  for (const char* const name : {"SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID"})
    chosen[name] = "0";
  return chosen;
}

// Files that are opened inside the job, which is the image.
base::Status check_files(const Work& work) {
  for (const auto& [variable, option] :
       {std::pair{"SLURM_SHIM_OUTPUT", "--output"}, std::pair{"SLURM_SHIM_ERROR", "--error"},
        std::pair{"SLURM_SHIM_INPUT", "--input"}}) {
    if (!work.variables.contains(variable)) continue;
    return base::invalid(option, "a job in an image has no such file; use %j, %A, %a, %x and %u");
  }
  return {};
}

base::Status put_places(const Settings& settings, const ContainerCaller& caller,
                        v1::JobSpec& spec) {
  auto mounts = mounts_of(settings.value("container-mounts"));
  if (!mounts) return base::invalid("--container-mounts", mounts.error().message);
  if (settings.has("container-mount-home")) {
    if (caller.home.empty())
      return base::invalid("--container-mount-home",
                           "HOME is not set; name it in "
                           "--container-mounts");
    mounts->push_back(caller.home + ":" + caller.home);
  }
  spec.mutable_mounts()->Assign(mounts->begin(), mounts->end());
  if (settings.has("container-workdir"))
    spec.set_container_workdir(settings.value("container-workdir"));
  return {};
}

}  // namespace

base::Result<std::string> image_of(std::string_view enroots) {
  constexpr std::string_view kScheme = "docker://";
  if (enroots.starts_with('/') || enroots.starts_with('.') || enroots.ends_with(".sqsh")) {
    return base::invalid(
        "--container-image",
        fmt::format("'{}' is a file of enroot; name the image in its registry", enroots));
  }
  if (enroots.starts_with(kScheme)) enroots.remove_prefix(kScheme.size());
  const std::size_t hash = enroots.find('#');
  const std::size_t at = enroots.find('@');
  if (at != std::string_view::npos && !enroots.substr(at).starts_with("@sha256:")) {
    return base::invalid("--container-image",
                         "a user of the registry cannot be named; see docs/containers.md for "
                         "credentials");
  }
  if (hash != std::string_view::npos) {
    return fmt::format("{}/{}", enroots.substr(0, hash), enroots.substr(hash + 1));
  }
  const std::size_t slash = enroots.find('/');
  if (slash == std::string_view::npos) return fmt::format("{}/library/{}", kDockerHub, enroots);
  if (looks_like_registry(enroots.substr(0, slash))) return std::string(enroots);
  return fmt::format("{}/{}", kDockerHub, enroots);
}

base::Result<std::vector<std::string>> mounts_of(std::string_view list) {
  std::vector<std::string> mounts;
  for (const std::string& item : comma_separated(std::string(list))) {
    const std::size_t first = item.find(':');
    const std::size_t second = first == std::string::npos ? first : item.find(':', first + 1);
    const std::string flags = second == std::string::npos ? "" : item.substr(second + 1);
    if (!flags.empty() && flags != "ro" && flags != "rw") {
      return base::invalid(
          {}, fmt::format("'{}' has the flags '{}'; ro and rw are known", item, flags));
    }
    const std::string source = item.substr(0, first);
    const std::string target =
        first == std::string::npos ? source : item.substr(first + 1, second - first - 1);
    mounts.push_back(fmt::format("{}:{}{}", source, target, flags == "ro" ? ":ro" : ""));
  }
  return mounts;
}

base::Status put_container(const Settings& settings, const Work& work,
                           const ContainerCaller& caller, v1::JobSpec& spec) {
  TRY_ASSIGN(*spec.mutable_image(), image_of(settings.value("container-image")));
  TRY(check_files(work));
  TRY(put_places(settings, caller, spec));
  std::vector<std::string> words = work.words;
  if (!work.script.empty()) {
    TRY_ASSIGN(words, script_command(work));
  }
  const Variables variables = container_variables(settings, caller.variables, spec);
  spec.clear_environment();
  spec.mutable_environment()->insert(variables.begin(), variables.end());
  std::vector<std::string> command = {"-c", std::string(kPreamble), "sh"};
  command.insert(command.end(), words.begin(), words.end());
  // The image's own entry point gets a program as its arguments.
  if (settings.has("container-entrypoint")) {
    command.insert(command.begin(), "/bin/sh");
  } else {
    spec.set_entrypoint("/bin/sh");
  }
  spec.mutable_command()->Assign(command.begin(), command.end());
  return {};
}

std::vector<std::string> container_warnings(const Settings& settings) {
  std::vector<std::string> warnings;
  if (wants_container(settings)) return warnings;
  for (const auto& [name, value] : settings.all()) {
    if (name.starts_with("container-"))
      warnings.push_back(
          fmt::format("--{} is ignored: no image is named (--container-image)", name));
  }
  return warnings;
}

}  // namespace gpu_platform::shims
