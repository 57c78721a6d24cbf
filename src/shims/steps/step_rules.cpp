#include "shims/steps/step_rules.h"

#include <algorithm>
#include <cerrno>
#include <fstream>

#include <fmt/format.h>

#include "cli/text/json_view.h"
#include "shims/steps/multi_prog.h"

namespace gpu_platform::shims {

namespace {

// It stands in the place of the file's name, and has what the file says.
constexpr const char* kPrograms = "multi-prog-text";
constexpr std::size_t kLargestFile = 64 * 1024;

constexpr const char* kStreams[] = {"input", "output", "error"};

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// "all", "none" or the number of a task; other values name files, also numbers beyond the tasks.
std::optional<StreamChoice> choice_of(std::string_view value, std::uint32_t tasks) {
  if (value == "all") return StreamChoice{};
  if (value == "none") return StreamChoice{StreamChoice::Kind::kNone, 0};
  if (!is_number(value)) return std::nullopt;
  const auto task = parse_number(value, 0);
  if (!task || *task >= tasks) return std::nullopt;
  return StreamChoice{StreamChoice::Kind::kOne, *task};
}

Files files_of(const Settings& settings) {
  return {settings.value("output"), settings.value("error"), settings.value("input"),
          settings.value("open-mode") == "append"};
}

void put_streams(const Settings& settings, Step& step) {
  const auto put = [&](const char* option, StreamChoice& choice, std::string& file) {
    const auto given = choice_of(settings.value(option), step.tasks);
    if (!given) return false;
    choice = *given;
    file.clear();
    return true;
  };
  put("input", step.input, step.files.input);
  const bool has_output = put("output", step.output, step.files.output);
  const bool has_error = put("error", step.error, step.files.error);
  if (has_output && !has_error && step.files.error.empty()) step.error = step.output;
}

base::Result<std::optional<std::int64_t>> seconds_after_end(const Settings& settings) {
  if (!settings.has("wait")) return std::optional<std::int64_t>();
  const auto read = parse_number(settings.value("wait"), 0);
  if (!read) return base::invalid("--wait", read.error().message);
  return *read == 0 ? std::nullopt : std::optional<std::int64_t>(*read);
}

base::Result<CpuBinding> cpu_binding_of(const Settings& settings) {
  if (!settings.has("cpu-bind")) return CpuBinding{};
  auto binding = parse_cpu_binding(settings.value("cpu-bind"));
  if (!binding) return base::invalid("--cpu-bind", binding.error().message);
  return binding;
}

// Tasks get CPUs of their own where the job has: elsewhere its jobs would all crowd the first ones
// of the CPUs that they share. The processes on several nodes of a job have one set of CPUs.
void put_step_cpus(const Variables& variables, Step& step, std::vector<std::string>& warnings) {
  if (step.cpu_binding.kind != CpuBinding::Kind::kOwn) return;
  const Cpus allowed = allowed_cpus();
  const auto count = parse_number(variable(variables, "GPU_PLATFORM_CPUS"), 1);
  if (count && *count == allowed.size() && nodes_of_job(variables).size() == 1) {
    step.cpus = allowed;
    return;
  }
  step.cpu_binding.kind = CpuBinding::Kind::kNone;
  warnings.emplace_back(
      "--cpu-bind: tasks are not bound to CPUs of their own: the job shares those near its GPUs "
      "with other jobs, or has several nodes; map_cpu and mask_cpu name CPUs");
}

base::Status put_programs(const Settings& settings, Step& step) {
  std::string text = settings.value(kPrograms);
  if (settings.has("multi-prog")) {
    TRY_ASSIGN(text, read_multi_prog(step.command.front()));
  } else if (!settings.has(kPrograms)) {
    return {};
  }
  const std::vector<std::string> arguments(step.command.begin() + 1, step.command.end());
  auto programs = programs_of_tasks(text, step.tasks, arguments);
  if (!programs) {
    return base::invalid("--multi-prog",
                         fmt::format("{}: {}", step.command.front(), programs.error().message));
  }
  step.programs = std::move(*programs);
  return {};
}

}  // namespace

base::Result<std::string> read_multi_prog(const std::string& path) {
  std::ifstream file(path);
  std::string text(kLargestFile + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.is_open() || file.bad())
    return base::invalid("--multi-prog", fmt::format("{} cannot be read", path));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kLargestFile)
    return base::invalid("--multi-prog", fmt::format("{} is larger than 64 KiB", path));
  if (text.contains('\0'))
    return base::invalid("--multi-prog", fmt::format("{} is not a text", path));
  return text;
}

base::Result<GpuBinding> gpu_binding_of(const Settings& settings, const Resources& resources) {
  if (settings.has("gpu-bind")) {
    auto binding = parse_gpu_binding(settings.value("gpu-bind"));
    if (!binding) return base::invalid("--gpu-bind", binding.error().message);
    return binding;
  }
  if (resources.gpus_per_task.value_or(0) > 0)
    return GpuBinding{GpuBinding::Kind::kPerTask, *resources.gpus_per_task, {}};
  if (const auto tasks = parse_number(settings.value("ntasks-per-gpu"), 1))
    return GpuBinding{GpuBinding::Kind::kSingle, *tasks, {}};
  return GpuBinding{};
}

base::Status put_task_rules(const Settings& settings, const Variables& variables, Step& step,
                            std::vector<std::string>& warnings) {
  step.files = files_of(settings);
  put_streams(settings, step);
  step.is_labelled = settings.has("label");
  step.is_unbuffered = settings.has("unbuffered");
  step.ends_on_failure =
      settings.has("kill-on-bad-exit") && settings.value("kill-on-bad-exit") != "0";
  if (settings.has("disable-status")) step.on_interrupt = OnInterrupt::kPassOn;
  if (settings.has("quit-on-interrupt")) step.on_interrupt = OnInterrupt::kEnd;
  TRY_ASSIGN(step.seconds_after_end, seconds_after_end(settings));
  TRY_ASSIGN(step.cpu_binding, cpu_binding_of(settings));
  put_step_cpus(variables, step, warnings);
  return put_programs(settings, step);
}

base::Result<std::string> carried_rules(Settings& settings, const std::string& program) {
  TRY(gpu_binding_of(settings, {}));
  TRY(cpu_binding_of(settings));
  TRY(seconds_after_end(settings));
  if (settings.has("relative") && settings.value("relative") != "0") {
    return base::fail(base::ErrorCode::kFailedPrecondition, "it is for steps of an existing job",
                      "--relative");
  }
  cli::Json rules = cli::Json::object();
  for (const char* option : {"gpu-bind", "wait", "kill-on-bad-exit", "label", "unbuffered",
                             "cpu-bind", "disable-status", "quit-on-interrupt"}) {
    if (settings.has(option)) rules[option] = settings.value(option);
  }
  if (settings.has("ntasks-per-gpu") && !settings.has("gpus-per-task") &&
      !settings.has("gpu-bind")) {
    rules["gpu-bind"] = "single:" + settings.value("ntasks-per-gpu");
  }
  if (settings.has("multi-prog")) {
    TRY_ASSIGN(rules[kPrograms], read_multi_prog(program));
  }
  for (const char* option : kStreams) {
    const std::string value = settings.value(option);
    if (value != "all" && value != "none" && !is_number(value)) continue;
    rules[option] = value;
    settings.erase(option);
  }
  return rules.empty() ? std::string() : rules.dump();
}

base::Result<Settings> taken_rules(std::string_view text) {
  Settings settings;
  if (text.empty()) return settings;
  const auto rules = cli::parse_object(std::string(text));
  if (!rules) return base::invalid({}, "the job's rules for its tasks cannot be read");
  for (const auto& [name, value] : rules->items())
    if (value.is_string()) settings.set(Option{name}, value.get<std::string>());
  return settings;
}

}  // namespace gpu_platform::shims
