#include "shims/resources.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gpu_platform::shims {

namespace {

constexpr std::uint32_t kMaxTasks = 1024;

// Runs a parser on an option's value, if it was given, and names it in the error.
template <class T, class Parse>
base::Result<std::optional<T>> read(const Settings& settings, std::string_view name,
                                    Parse&& parse) {
  if (!settings.has(name)) return std::optional<T>();
  base::Result<T> value = parse(settings.value(name));
  if (!value) return base::invalid(fmt::format("--{}", name), value.error().message);
  return std::optional<T>(std::move(*value));
}

base::Result<std::optional<std::uint32_t>> number(const Settings& settings, std::string_view name) {
  return read<std::uint32_t>(settings, name,
                             [](std::string_view text) { return parse_number(text, 1); });
}

base::Status check_nodes(const Settings& settings) {
  TRY_ASSIGN(const auto nodes, read<std::uint32_t>(settings, "nodes", parse_nodes));
  if (nodes.value_or(1) == 1) return {};
  return base::fail(
      base::ErrorCode::kFailedPrecondition,
      fmt::format(
          "a job of sbatch or srun has one node, not {}: ask for its GPUs with -N 1 and --gpus, or "
          "start a job on several with 'gpu-platform submit --nodes'",
          *nodes),
      "--nodes");
}

base::Result<std::uint32_t> product(std::uint32_t a, std::uint32_t b, std::string_view field) {
  constexpr std::uint64_t kMax = 1'048'576;
  const std::uint64_t value = std::uint64_t{a} * b;
  if (value > kMax) return base::invalid(std::string(field), "asks for more than there can be");
  return static_cast<std::uint32_t>(value);
}

// GPUs by whichever option; those that were given must agree.
base::Status put_gpus(const Settings& settings, Resources& resources,
                      std::vector<std::string>& warnings) {
  std::vector<std::string> others;
  TRY_ASSIGN(const auto gres, read<GpuCount>(settings, "gres", [&](std::string_view text) {
               return parse_gres(text, others);
             }));
  if (!others.empty()) {
    warnings.push_back(
        fmt::format("--gres: only GPUs are counted here; {} is ignored", fmt::join(others, ", ")));
  }
  TRY_ASSIGN(const auto total, read<GpuCount>(settings, "gpus", parse_gpus));
  TRY_ASSIGN(const auto per_node, read<GpuCount>(settings, "gpus-per-node", parse_gpus));
  TRY_ASSIGN(auto per_task, read<GpuCount>(settings, "gpus-per-task", parse_gpus));
  if (per_task.has_value() && !settings.has("ntasks") && !settings.has("ntasks-per-node") &&
      total.has_value()) {
    resources.tasks = per_task->count == 0 ? 1 : std::max(1U, total->count / per_task->count);
    per_task.reset();
  }
  if (per_task.has_value()) {
    TRY_ASSIGN(per_task->count, product(per_task->count, resources.tasks, "--gpus-per-task"));
  }
  std::string_view first;
  const std::pair<std::string_view, const std::optional<GpuCount>*> all[] = {
      {"gpus", &total},
      {"gpus-per-node", &per_node},
      {"gres", &gres},
      {"gpus-per-task", &per_task}};
  for (const auto& [name, gpus] : all) {
    if (!gpus->has_value()) continue;
    if (first.empty()) {
      first = name;
      resources.gpus = **gpus;
    } else if ((*gpus)->count != resources.gpus.count) {
      return base::invalid(fmt::format("--{}", name),
                           fmt::format("asks for {} GPUs and --{} for {}; say it once",
                                       (*gpus)->count, first, resources.gpus.count));
    } else if (resources.gpus.type.empty()) {
      resources.gpus.type = (*gpus)->type;
    }
  }
  return {};
}

base::Status put_tasks(const Settings& settings, Resources& resources) {
  TRY_ASSIGN(const auto tasks, number(settings, "ntasks"));
  TRY_ASSIGN(resources.tasks_per_node, number(settings, "ntasks-per-node"));
  resources.tasks = tasks.value_or(resources.tasks_per_node.value_or(1));
  return {};
}

// Without any wish a job with GPUs gets the node's share of CPUs for them, others one CPU for each
// task.
base::Status put_cpus(const Settings& settings, Resources& resources) {
  TRY_ASSIGN(resources.cpus_per_task, number(settings, "cpus-per-task"));
  TRY_ASSIGN(const auto per_gpu, number(settings, "cpus-per-gpu"));
  const bool is_counted = resources.cpus_per_task.has_value() || resources.gpus.count == 0 ||
                          settings.has("mem-per-cpu");
  if (per_gpu.has_value() && resources.gpus.count > 0) {
    TRY_ASSIGN(resources.cpus, product(*per_gpu, resources.gpus.count, "--cpus-per-gpu"));
  } else if (is_counted) {
    TRY_ASSIGN(resources.cpus,
               product(resources.tasks, resources.cpus_per_task.value_or(1), "--cpus-per-task"));
  }
  return {};
}

base::Status put_memory(const Settings& settings, Resources& resources,
                        std::vector<std::string>& warnings) {
  TRY_ASSIGN(const auto total, read<base::Bytes>(settings, "mem", parse_memory));
  TRY_ASSIGN(resources.memory_per_cpu, read<base::Bytes>(settings, "mem-per-cpu", parse_memory));
  TRY_ASSIGN(resources.memory_per_gpu, read<base::Bytes>(settings, "mem-per-gpu", parse_memory));
  const int given =
      (total ? 1 : 0) + (resources.memory_per_cpu ? 1 : 0) + (resources.memory_per_gpu ? 1 : 0);
  if (given > 1)
    return base::invalid("--mem", "--mem, --mem-per-cpu and --mem-per-gpu exclude each other");
  if (resources.memory_per_gpu.has_value() && resources.gpus.count == 0) {
    return base::invalid("--mem-per-gpu", "the job asks for no GPU");
  }
  constexpr std::int64_t kMax = std::int64_t{1} << 50;
  const auto times = [&](base::Bytes each, std::uint32_t count,
                         std::string_view field) -> base::Status {
    if (each.value() > kMax / std::max(1U, count))
      return base::invalid(std::string(field), "is more than 1024T in all");
    resources.memory = each * count;
    return {};
  };
  if (total.has_value()) TRY(times(*total, 1, "--mem"));
  if (resources.memory_per_cpu.has_value()) {
    TRY(times(*resources.memory_per_cpu, resources.cpus.value_or(1), "--mem-per-cpu"));
  }
  if (resources.memory_per_gpu.has_value()) {
    TRY(times(*resources.memory_per_gpu, resources.gpus.count, "--mem-per-gpu"));
  }
  if (resources.memory.has_value() && resources.memory->value() == 0) {
    warnings.emplace_back(
        "all memory of a node cannot be asked for; the job gets the node's share for its GPUs and "
        "CPUs");
    resources.memory.reset();
  }
  return {};
}

}  // namespace

base::Result<Resources> resources_of(const Settings& settings, std::vector<std::string>& warnings) {
  Resources resources;
  TRY(check_nodes(settings));
  TRY(put_tasks(settings, resources));
  TRY(put_gpus(settings, resources, warnings));
  TRY_ASSIGN(const auto tasks_per_gpu, number(settings, "ntasks-per-gpu"));
  if (tasks_per_gpu.has_value() && resources.gpus.count > 0 && !settings.has("ntasks")) {
    TRY_ASSIGN(resources.tasks, product(*tasks_per_gpu, resources.gpus.count, "--ntasks-per-gpu"));
  }
  if (resources.tasks > kMaxTasks) {
    return base::invalid("--ntasks", fmt::format("a step has at most {} tasks", kMaxTasks));
  }
  TRY(put_cpus(settings, resources));
  TRY(put_memory(settings, resources, warnings));
  return resources;
}

}  // namespace gpu_platform::shims
