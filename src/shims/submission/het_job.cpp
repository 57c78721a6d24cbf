#include "shims/submission/het_job.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "base/parse.h"
#include "shims/options/batch_options.h"
#include "shims/steps/task_layout.h"
#include "shims/text/host_list.h"
#include "shims/text/slurm_values.h"

namespace gpu_platform::shims {

namespace {

constexpr std::uint32_t kMaxParts = 128;  // as in Slurm

// Of the job, not of a part: those of the first part count, and others may only repeat them.
constexpr const char* kOfTheJob[] = {"constraint", "partition", "exclusive",   "qos",
                                     "account",    "time",      "reservation", "gres-flags"};

std::unexpected<base::Error> unlike(std::size_t part, const std::string& what) {
  return base::fail(
      base::ErrorCode::kFailedPrecondition,
      fmt::format("jobs of unlike parts are not supported, and part {} differs from the first one "
                  "in {}: submit one job for each, the later ones with --dependency=after:ID, or "
                  "one job in which every node has what the largest part needs",
                  part, what));
}

base::Status check_alike(std::size_t part, const Resources& first, const Resources& other) {
  if (first.gpus.count != other.gpus.count || first.gpus.type != other.gpus.type)
    return unlike(part, "its GPUs on each node");
  if (first.cpus != other.cpus || first.cpus_per_task != other.cpus_per_task)
    return unlike(part, "its CPUs on each node");
  if (first.memory != other.memory) return unlike(part, "its memory on each node");
  if (std::uint64_t{first.tasks} * other.nodes != std::uint64_t{other.tasks} * first.nodes)
    return unlike(part, "its tasks on each node");
  return {};
}

std::string name_in_group(const char* name, std::size_t part) {
  return fmt::format("{}_HET_GROUP_{}", name, part);
}

std::string layout_text(const HetPart& part) {
  return per_node_text(counts_of(layout_of(part.tasks, part.nodes)));
}

std::uint32_t number_of(const Variables& v, const std::string& name) {
  return static_cast<std::uint32_t>(
      base::parse_count(variable(v, name), 0, UINT32_MAX).value_or(0));
}

// "0,2-3" as numbers below `size`.
base::Result<std::vector<std::uint32_t>> groups_of(std::string_view text, std::uint32_t size) {
  std::vector<std::uint32_t> groups;
  for (const std::string& item : comma_separated(text)) {
    const std::size_t dash = item.find('-');
    const auto first = base::parse_count(item.substr(0, dash), 0, kMaxParts);
    const auto last =
        dash == std::string::npos ? first : base::parse_count(item.substr(dash + 1), 0, kMaxParts);
    if (!first || !last || *first > *last || *last >= size) {
      return base::invalid("--het-group",
                           fmt::format("'{}': the job has parts 0 to {}", item, size - 1));
    }
    for (auto group = *first; group <= *last; ++group)
      groups.push_back(static_cast<std::uint32_t>(group));
  }
  std::ranges::sort(groups);
  const auto repeats = std::ranges::unique(groups);
  groups.erase(repeats.begin(), repeats.end());
  if (groups.empty()) return base::invalid("--het-group", "names no part");
  return groups;
}

struct Groups {
  std::string nodes;  // a,b
  HetPart size{0, 0};
};

base::Result<Groups> find_groups(const Variables& variables, const std::string& text) {
  TRY_ASSIGN(const auto numbers, groups_of(text, number_of(variables, "SLURM_HET_SIZE")));
  Groups groups;
  for (const std::uint32_t group : numbers) {
    const auto list = variable(variables, name_in_group("SLURM_JOB_NODELIST", group));
    for (const std::string& name : host_names(list)) {
      groups.nodes += (groups.nodes.empty() ? "" : ",") + name;
      ++groups.size.nodes;
    }
    groups.size.tasks += number_of(variables, name_in_group("SLURM_NTASKS", group));
  }
  return groups;
}

// What stands between the words ":".
std::vector<std::vector<std::string>> split_parts(const std::vector<std::string>& words) {
  std::vector<std::vector<std::string>> parts(1);
  for (const std::string& word : words) {
    if (word == ":") {
      parts.emplace_back();
    } else {
      parts.back().push_back(word);
    }
  }
  return parts;
}

}  // namespace

base::Result<HetJob> joined_parts(const std::vector<Settings>& parts) {
  HetJob job{parts.front(), {}};
  if (parts.size() == 1) return job;
  if (parts.size() > kMaxParts)
    return base::invalid({}, fmt::format("a job has at most {} parts", kMaxParts));
  std::vector<std::string> said;
  TRY_ASSIGN(const Resources first, resources_of(parts.front(), said));
  std::uint32_t nodes = 0;
  std::uint32_t tasks = 0;
  std::uint32_t gpus = 0;
  bool counts_tasks = false;
  std::string names;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    TRY_ASSIGN(const Resources other, resources_of(parts[i], said));
    TRY(check_alike(i + 1, first, other));
    for (const char* option : kOfTheJob) {
      const bool differs =
          i > 0 && parts[i].has(option) && parts[i].value(option) != parts.front().value(option);
      if (differs) return unlike(i + 1, fmt::format("--{}", option));
    }
    if (parts[i].has("nodelist") != parts.front().has("nodelist"))
      return unlike(i + 1, "--nodelist");
    if (parts[i].has("nodelist")) names += (i > 0 ? "," : "") + parts[i].value("nodelist");
    nodes += other.nodes;
    tasks += other.tasks;
    gpus += other.gpus_in_all.value_or(0);
    counts_tasks = counts_tasks || other.counts_tasks;
    job.parts.push_back({other.nodes, other.tasks});
  }
  job.settings.set(Option{"nodes"}, fmt::format("{}", nodes));
  if (counts_tasks) job.settings.set(Option{"ntasks"}, fmt::format("{}", tasks));
  if (job.settings.has("gpus")) {
    const std::string type = first.gpus.type.empty() ? "" : first.gpus.type + ":";
    job.settings.set(Option{"gpus"}, fmt::format("{}{}", type, gpus));
  }
  if (!names.empty()) job.settings.set(Option{"nodelist"}, names);
  return job;
}

std::string parts_text(const std::vector<HetPart>& parts) {
  std::string text;
  for (const HetPart& part : parts)
    text += fmt::format("{}{}:{}", text.empty() ? "" : ",", part.nodes, part.tasks);
  return text;
}

std::vector<HetPart> parts_in(std::string_view text) {
  std::vector<HetPart> parts;
  for (const std::string& item : comma_separated(text)) {
    const std::size_t colon = item.find(':');
    if (colon == std::string::npos) return {};
    const auto nodes = base::parse_count(item.substr(0, colon), 1, UINT32_MAX);
    const auto tasks = base::parse_count(item.substr(colon + 1), 1, UINT32_MAX);
    if (!nodes || !tasks) return {};
    parts.push_back({static_cast<std::uint32_t>(*nodes), static_cast<std::uint32_t>(*tasks)});
  }
  return parts;
}

void add_het_variables(Variables& v, const std::vector<HetPart>& parts) {
  if (parts.size() < 2) return;
  const std::vector<std::string> names = node_names(v);
  const auto all =
      std::accumulate(parts.begin(), parts.end(), std::size_t{0},
                      [](std::size_t sum, const HetPart& part) { return sum + part.nodes; });
  if (all != names.size()) return;
  const std::string cpus(variable(v, "GPU_PLATFORM_CPUS"));
  v["SLURM_HET_SIZE"] = fmt::format("{}", parts.size());
  std::size_t begin = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const HetPart& part = parts[i];
    const auto at = names.begin() + static_cast<std::ptrdiff_t>(begin);
    const std::string list = host_list_in_order({at, at + part.nodes});
    begin += part.nodes;
    const std::string cpus_of_nodes =
        part.nodes == 1 ? cpus : fmt::format("{}(x{})", cpus, part.nodes);
    const std::pair<const char*, std::string> values[] = {
        {"SLURM_JOB_ID", std::string(variable(v, "SLURM_JOB_ID"))},
        {"SLURM_JOB_NAME", std::string(variable(v, "SLURM_JOB_NAME"))},
        {"SLURM_JOB_PARTITION", std::string(variable(v, "SLURM_JOB_PARTITION"))},
        {"SLURM_JOB_NODELIST", list},
        {"SLURM_JOB_NUM_NODES", fmt::format("{}", part.nodes)},
        {"SLURM_JOB_CPUS_PER_NODE", cpus_of_nodes},
        {"SLURM_NTASKS", fmt::format("{}", part.tasks)},
        {"SLURM_NPROCS", fmt::format("{}", part.tasks)},
        {"SLURM_TASKS_PER_NODE", layout_text(part)}};
    for (const auto& [name, value] : values) {
      v[name_in_group(name, i)] = value;
      if (i == 0) v[name] = value;
    }
    if (i == 0) {
      v["SLURM_NODELIST"] = list;
      v["SLURM_NNODES"] = fmt::format("{}", part.nodes);
    }
  }
}

base::Status put_het_group(const Variables& variables, Settings& settings) {
  const std::uint32_t size = number_of(variables, "SLURM_HET_SIZE");
  const std::string asked = settings.value("het-group");
  settings.erase("het-group");
  if (size < 2) {
    if (asked.empty() || asked == "0") return {};
    return base::invalid("--het-group", "the job has one part");
  }
  if (asked.empty() && settings.has("nodelist")) return {};
  TRY_ASSIGN(const Groups groups, find_groups(variables, asked.empty() ? "0" : asked));
  if (!settings.has("nodelist")) settings.set(Option{"nodelist"}, groups.nodes);
  const bool has_tasks = settings.has("ntasks") || settings.has("ntasks-per-node");
  if (!has_tasks && groups.size.tasks > 0)
    settings.set(Option{"ntasks"}, fmt::format("{}", groups.size.tasks));
  return {};
}

base::Result<HetStep> joined_step(const Variables& variables, const std::vector<std::string>& words,
                                  Settings& settings, std::vector<std::string>& warnings) {
  const auto parts = split_parts(words);
  if (parts.size() == 1 || (parts.size() == 2 && parts.back().empty())) return HetStep{words, {}};
  if (number_of(variables, "SLURM_HET_SIZE") < 2) return std::unexpected(several_parts());
  HetStep step;
  HetPart first;
  std::string groups;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Settings own = settings;
    std::vector<std::string> command = parts[i];
    if (i > 0) {
      own = Settings();
      TRY_ASSIGN(command, read_options({srun_options()}, parts[i], own, warnings));
    }
    if (command.empty()) return base::invalid(":", "a part of the step has no command");
    const std::string group = own.has("het-group") ? own.value("het-group") : fmt::format("{}", i);
    TRY_ASSIGN(Groups found, find_groups(variables, group));
    if (own.has("ntasks")) {
      TRY_ASSIGN(found.size.tasks, parse_number(own.value("ntasks"), 1));
    }
    if (i == 0) {
      first = found.size;
      step.command = command;
    }
    if (std::uint64_t{first.tasks} * found.size.nodes !=
        std::uint64_t{found.size.tasks} * first.nodes)
      return unlike(i + 1, "its tasks on each node");
    groups += (i > 0 ? "," : "") + group;
    step.programs.insert(step.programs.end(), found.size.tasks, command);
  }
  settings.set(Option{"het-group"}, groups);
  settings.set(Option{"ntasks"}, fmt::format("{}", step.programs.size()));
  return step;
}

}  // namespace gpu_platform::shims
