#include "shims/submission/resources.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/parse.h"
#include "shims/steps/step_variables.h"

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

base::Result<std::uint32_t> product(std::uint32_t a, std::uint32_t b, std::string_view field) {
  constexpr std::uint64_t kMax = 1'048'576;
  const std::uint64_t value = std::uint64_t{a} * b;
  if (value > kMax) {
    return base::invalid(std::string(field),
                         fmt::format("{} × {} = {} exceeds the limit of {}", a, b, value, kMax));
  }
  return static_cast<std::uint32_t>(value);
}

struct Wishes {
  std::optional<NodeCount> nodes;
  std::optional<std::uint32_t> tasks;
  std::optional<GpuCount> gpus;
  std::optional<GpuCount> gpus_per_node;
  std::optional<GpuCount> gres;
  std::optional<SharedGres> part;
  std::optional<GpuCount> gpus_per_task;
  std::optional<GpuCount> gpus_per_socket;
};

// --gpus-per-socket is so many on each node as its sockets have together. The sockets themselves
// are chosen by the platform.
base::Status put_socket_gpus(const Settings& settings, Wishes& wishes,
                             std::vector<std::string>& warnings) {
  TRY_ASSIGN(wishes.gpus_per_socket, read<GpuCount>(settings, "gpus-per-socket", parse_gpus));
  if (!wishes.gpus_per_socket) {
    if (settings.has("sockets-per-node")) {
      warnings.emplace_back(
          "--sockets-per-node is ignored: the platform binds a job to the CPUs next to its GPUs");
    }
    return {};
  }
  if (!settings.has("sockets-per-node")) {
    return base::fail(base::ErrorCode::kInvalidArgument,
                      "--gpus-per-socket option requires --sockets-per-node specification");
  }
  TRY_ASSIGN(const auto sockets, number(settings, "sockets-per-node"));
  GpuCount on_node = *wishes.gpus_per_socket;
  TRY_ASSIGN(on_node.count, product(on_node.count, *sockets, "--gpus-per-socket"));
  if (wishes.gpus_per_node && wishes.gpus_per_node->count != on_node.count) {
    return base::invalid("--gpus-per-socket",
                         fmt::format("asks for {} GPUs on each node and --gpus-per-node for {}; "
                                     "set it once",
                                     on_node.count, wishes.gpus_per_node->count));
  }
  wishes.gpus_per_node = on_node;
  return {};
}

base::Result<Wishes> wishes_of(const Settings& settings, std::vector<std::string>& warnings) {
  Wishes wishes;
  TRY_ASSIGN(wishes.nodes, read<NodeCount>(settings, "nodes", parse_nodes));
  TRY_ASSIGN(wishes.tasks, number(settings, "ntasks"));
  std::vector<std::string> others;
  TRY_ASSIGN(wishes.gres, read<GpuCount>(settings, "gres", [&](std::string_view text) {
               return parse_gres(text, others);
             }));
  TRY_ASSIGN(const auto part, read<std::optional<SharedGres>>(settings, "gres", parse_shared_gres));
  wishes.part = part.value_or(std::nullopt);
  std::erase_if(others, is_shared_gres);
  if (!others.empty()) {
    warnings.push_back(
        fmt::format("--gres: only GPUs are counted here; {} is ignored", fmt::join(others, ", ")));
  }
  TRY_ASSIGN(wishes.gpus, read<GpuCount>(settings, "gpus", parse_gpus));
  TRY_ASSIGN(wishes.gpus_per_node, read<GpuCount>(settings, "gpus-per-node", parse_gpus));
  TRY_ASSIGN(wishes.gpus_per_task, read<GpuCount>(settings, "gpus-per-task", parse_gpus));
  TRY(put_socket_gpus(settings, wishes, warnings));
  const bool has_whole = wishes.gpus || wishes.gpus_per_node || wishes.gpus_per_task ||
                         (wishes.gres && wishes.gres->count > 0);
  if (wishes.part && has_whole) {
    return base::invalid("--gres",
                         "asks for a part of a GPU, and the job asks for whole GPUs too; set one "
                         "of them");
  }
  return wishes;
}

std::uint32_t parts(std::uint32_t whole, std::uint32_t each) {
  return each == 0 ? 1 : std::max(1U, (whole + each - 1) / each);
}

// Returns the number of nodes without --nodes: as many as the tasks, the GPUs or the names need.
base::Result<std::uint32_t> needed_nodes(const Settings& settings, const Wishes& wishes,
                                         const Resources& resources) {
  std::uint32_t nodes = 1;
  if (wishes.tasks && resources.tasks_per_node)
    nodes = std::max(nodes, parts(*wishes.tasks, *resources.tasks_per_node));
  const auto& each = wishes.gpus_per_node ? wishes.gpus_per_node : wishes.gres;
  if (each && each->count > 0) {
    if (wishes.gpus) nodes = std::max(nodes, parts(wishes.gpus->count, each->count));
    if (wishes.gpus_per_task && wishes.tasks) {
      TRY_ASSIGN(const auto gpus,
                 product(wishes.gpus_per_task->count, *wishes.tasks, "--gpus-per-task"));
      nodes = std::max(nodes, parts(gpus, each->count));
    }
  }
  if (settings.has("nodelist"))
    nodes =
        std::max(nodes, static_cast<std::uint32_t>(host_names(settings.value("nodelist")).size()));
  return nodes;
}

// Slurm gives a job all the nodes that it names, and others beside them. Here it gets named ones
// only, so the names must be as many as the nodes.
base::Status check_named_nodes(const Settings& settings, const Resources& resources) {
  if (!settings.has("nodelist")) return {};
  const std::size_t names = host_names(settings.value("nodelist")).size();
  if (names == resources.nodes) return {};
  return base::fail(base::ErrorCode::kFailedPrecondition,
                    fmt::format("it names {} nodes and the job has {}: name as many, or none",
                                names, resources.nodes),
                    "--nodelist");
}

base::Status put_nodes(const Settings& settings, const Wishes& wishes, Resources& resources,
                       std::vector<std::string>& warnings) {
  if (!wishes.nodes) {
    TRY_ASSIGN(resources.nodes, needed_nodes(settings, wishes, resources));
    return {};
  }
  const auto& [least, most] = *wishes.nodes;
  TRY_ASSIGN(const std::uint32_t needed, needed_nodes(settings, wishes, resources));
  resources.nodes = std::clamp(needed, least, std::max(least, most));
  if (most > least) {
    warnings.push_back(
        fmt::format("--nodes={}: the job gets {} nodes and no more, also where others are free",
                    settings.value("nodes"), resources.nodes));
  }
  if (wishes.tasks && *wishes.tasks < resources.nodes) {
    warnings.push_back(fmt::format("can't run {} processes on {} nodes, setting nnodes to {}",
                                   *wishes.tasks, resources.nodes, *wishes.tasks));
    resources.nodes = *wishes.tasks;
  }
  if (wishes.tasks && resources.tasks_per_node &&
      std::uint64_t{*resources.tasks_per_node} * resources.nodes < *wishes.tasks) {
    warnings.push_back(
        fmt::format("can't honor --ntasks-per-node set to {} which doesn't match the requested "
                    "tasks {} with the number of requested nodes {}. Ignoring --ntasks-per-node.",
                    *resources.tasks_per_node, *wishes.tasks, resources.nodes));
    resources.tasks_per_node.reset();
  }
  return {};
}

base::Status put_tasks(const Settings& settings, const Wishes& wishes, Resources& resources) {
  const std::uint32_t nodes = resources.nodes;
  TRY_ASSIGN(const auto by_node,
             product(resources.tasks_per_node.value_or(1), nodes, "--ntasks-per-node"));
  resources.tasks = wishes.tasks.value_or(by_node);
  resources.counts_tasks = wishes.tasks || resources.tasks_per_node;
  const auto& each_task = wishes.gpus_per_task;
  if (!resources.counts_tasks && each_task && each_task->count > 0 && wishes.gpus) {
    resources.tasks = std::max(nodes, wishes.gpus->count / each_task->count);
    resources.counts_tasks = true;
  }
  TRY_ASSIGN(const auto per_gpu, number(settings, "ntasks-per-gpu"));
  if (!per_gpu || wishes.tasks) return {};
  const auto& each = wishes.gpus_per_node ? wishes.gpus_per_node : wishes.gres;
  std::uint32_t gpus = wishes.gpus ? wishes.gpus->count : 0;
  if (!wishes.gpus && each) {
    TRY_ASSIGN(gpus, product(each->count, nodes, "--gpus-per-node"));
  }
  if (gpus == 0) return {};
  TRY_ASSIGN(resources.tasks, product(*per_gpu, gpus, "--ntasks-per-gpu"));
  resources.counts_tasks = true;
  return {};
}

// --ntasks-per-gpu without GPUs asks for one GPU per N tasks.
base::Result<std::optional<GpuCount>> gpus_by_tasks(const Settings& settings, const Wishes& wishes,
                                                    const Resources& resources) {
  const bool has_gpus = wishes.gpus || wishes.gpus_per_node || wishes.gres || wishes.gpus_per_task;
  TRY_ASSIGN(const auto per_gpu, number(settings, "ntasks-per-gpu"));
  if (has_gpus || !per_gpu) return std::optional<GpuCount>();
  if (!wishes.tasks)
    return base::invalid("--ntasks-per-gpu", "the job asks for no GPUs and no number of tasks");
  return std::optional(GpuCount{parts(resources.tasks, *per_gpu), {}});
}

// GPUs by whichever option; those that were given must agree.
base::Status put_gpus(const Wishes& wishes, Resources& resources) {
  const std::uint32_t nodes = resources.nodes;
  if (wishes.part) {
    resources.part = wishes.part;
    resources.gpus = {1, {}};
    return {};
  }
  if (wishes.gpus_per_task) resources.gpus_per_task = wishes.gpus_per_task->count;
  if (wishes.gpus_per_socket) resources.gpus_per_socket = wishes.gpus_per_socket->count;
  if (wishes.gpus) resources.gpus_in_all = wishes.gpus->count;
  std::optional<GpuCount> by_task = wishes.gpus_per_task;
  if (by_task) {
    TRY_ASSIGN(by_task->count, product(by_task->count, resources.tasks, "--gpus-per-task"));
    if (!resources.gpus_in_all) resources.gpus_in_all = by_task->count;
  }
  struct Given {
    std::string_view name;
    const std::optional<GpuCount>& gpus;
    bool is_of_each_node;
  };
  const Given all[] = {{"gpus", wishes.gpus, false},
                       {"gpus-per-node", wishes.gpus_per_node, true},
                       {"gres", wishes.gres, true},
                       {"gpus-per-task", by_task, false}};
  std::string_view first;
  std::uint32_t first_count = 0;
  for (const auto& [name, gpus, is_of_each_node] : all) {
    if (!gpus) continue;
    std::uint32_t count = gpus->count;
    if (is_of_each_node) {
      TRY_ASSIGN(count, product(count, nodes, name));
    }
    if (first.empty()) {
      first = name;
      first_count = count;
      resources.gpus = {parts(count, nodes) * (count > 0 ? 1 : 0), gpus->type};
    } else if (count != first_count) {
      return base::invalid(
          fmt::format("--{}", name),
          fmt::format("asks for {} GPUs and --{} for {}; set it once", count, first, first_count));
    } else if (resources.gpus.type.empty()) {
      resources.gpus.type = gpus->type;
    }
  }
  return {};
}

// Without any wish a job with GPUs gets the node's share of CPUs for them, others one CPU for each
// task.
base::Status put_cpus(const Settings& settings, Resources& resources) {
  TRY_ASSIGN(resources.cpus_per_task, number(settings, "cpus-per-task"));
  TRY_ASSIGN(const auto per_gpu, number(settings, "cpus-per-gpu"));
  const bool is_counted = resources.cpus_per_task.has_value() || resources.gpus.count == 0 ||
                          settings.has("mem-per-cpu");
  resources.cpus_per_gpu = per_gpu;
  if (per_gpu.has_value() && resources.gpus.count > 0) {
    TRY_ASSIGN(resources.cpus, product(*per_gpu, resources.gpus.count, "--cpus-per-gpu"));
  } else if (is_counted) {
    TRY_ASSIGN(resources.cpus, product(parts(resources.tasks, resources.nodes),
                                       resources.cpus_per_task.value_or(1), "--cpus-per-task"));
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
      return base::invalid(
          std::string(field),
          fmt::format("{} for each of {} exceeds the limit of 1024T", base::written(each), count));
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

std::uint64_t cpus_on_each_of(std::uint32_t nodes, const Resources& resources) {
  if (!resources.cpus) return 0;  // the node's share
  const std::uint32_t gpus = resources.gpus_in_all.value_or(0);
  if (resources.cpus_per_gpu && gpus > 0)
    return std::uint64_t{*resources.cpus_per_gpu} * (gpus / nodes);
  return std::uint64_t{parts(resources.tasks, nodes)} * resources.cpus_per_task.value_or(1);
}

}  // namespace

base::Result<Resources> resources_of(const Settings& settings, std::vector<std::string>& warnings) {
  Resources resources;
  TRY_ASSIGN(Wishes wishes, wishes_of(settings, warnings));
  TRY_ASSIGN(resources.tasks_per_node, number(settings, "ntasks-per-node"));
  TRY(put_nodes(settings, wishes, resources, warnings));
  TRY(check_named_nodes(settings, resources));
  TRY(put_tasks(settings, wishes, resources));
  if (resources.tasks > kMaxTasks) {
    return base::invalid("--ntasks", fmt::format("a step has at most {} tasks", kMaxTasks));
  }
  TRY_ASSIGN(const auto by_tasks, gpus_by_tasks(settings, wishes, resources));
  if (by_tasks) wishes.gpus = by_tasks;
  TRY(put_gpus(wishes, resources));
  TRY(put_cpus(settings, resources));
  TRY(put_memory(settings, resources, warnings));
  return resources;
}

bool leaves_nodes_open(const Settings& settings, const Resources& resources) {
  constexpr const char* kSay[] = {"nodes", "nodelist",        "gpus-per-node",
                                  "gres",  "ntasks-per-node", "gpus-per-socket"};
  return std::ranges::none_of(kSay, [&](const char* option) { return settings.has(option); }) &&
         (resources.gpus_in_all.value_or(0) > 1 || resources.tasks > 1);
}

std::uint32_t fewest_nodes(const Resources& resources, std::span<const NodeSize> nodes) {
  const std::uint32_t gpus = resources.gpus_in_all.value_or(0);
  for (std::uint32_t count = 1; count <= nodes.size(); ++count) {
    const bool is_equal = gpus % count == 0 &&
                          (!resources.gpus_per_task || count == 1 || resources.tasks % count == 0);
    if (!is_equal || (resources.counts_tasks && count > resources.tasks)) continue;
    const std::uint64_t cpus = cpus_on_each_of(count, resources);
    const auto holders = std::ranges::count_if(nodes, [&](const NodeSize& node) {
      return (count == 1 ? node.gpus : node.gpus_alike) >= gpus / count && node.cpus >= cpus;
    });
    if (holders >= static_cast<std::ptrdiff_t>(count)) return count;
  }
  return 1;
}

base::Status check_equal_parts(const Resources& resources) {
  const std::uint32_t gpus = resources.gpus_in_all.value_or(0);
  if (gpus % resources.nodes == 0) return {};
  return base::fail(base::ErrorCode::kFailedPrecondition,
                    fmt::format("{} GPUs cannot be divided equally among {} nodes, and the nodes "
                                "of a job have equal numbers; use --gpus-per-node",
                                gpus, resources.nodes),
                    resources.gpus_per_task ? "--gpus-per-task" : "--gpus");
}

}  // namespace gpu_platform::shims
