#include "shims/steps/step_variables.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/name_list.h"
#include "base/parse.h"
#include "shims/steps/task_layout.h"
#include "shims/submission/het_job.h"
#include "shims/text/host_list.h"

namespace gpu_platform::shims {

namespace {

std::optional<std::int64_t> number_in(const Variables& variables, std::string_view name) {
  const std::string_view text = variable(variables, name);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value)
                                                                  : std::nullopt;
}

std::string mebibytes(std::int64_t bytes) {
  return fmt::format("{}", bytes / base::kMiB.value());
}

std::string cpus_per_node(const Variables& v, std::size_t nodes) {
  if (nodes == 1) return std::string(variable(v, "GPU_PLATFORM_CPUS"));
  std::vector<std::uint32_t> counts;
  for (std::size_t node = 0; node < nodes; ++node) {
    const auto read = base::parse_count(part_of_node(v, node, "GPU_PLATFORM_CPUS"), 0, UINT32_MAX);
    counts.push_back(static_cast<std::uint32_t>(read.value_or(0)));
  }
  return per_node_text(counts);
}

// Without a number of tasks there is one for each node.
std::string tasks_per_node(const Variables& v, std::size_t nodes) {
  const auto tasks = base::parse_count(variable(v, "SLURM_NTASKS"), nodes, UINT32_MAX);
  const auto count = static_cast<std::uint32_t>(tasks.value_or(nodes));
  return per_node_text(counts_of(layout_of(count, static_cast<std::uint32_t>(nodes))));
}

void add_place(Variables& v) {
  const std::vector<std::string> nodes = node_names(v);
  for (const char* name : {"SLURM_JOB_NODELIST", "SLURM_NODELIST"})
    v[name] = host_list_in_order(nodes);
  const std::string node(variable(v, "GPU_PLATFORM_NODE"));
  for (const char* name : {"SLURMD_NODENAME", "SLURM_TOPOLOGY_ADDR"}) v[name] = node;
  v["SLURM_TOPOLOGY_ADDR_PATTERN"] = "node";
  for (const char* name : {"SLURM_JOB_NUM_NODES", "SLURM_NNODES"})
    v[name] = fmt::format("{}", nodes.size());
  v["SLURM_CPUS_ON_NODE"] = std::string(variable(v, "GPU_PLATFORM_CPUS"));
  v["SLURM_JOB_CPUS_PER_NODE"] = cpus_per_node(v, nodes.size());
  v["SLURM_TASKS_PER_NODE"] = tasks_per_node(v, nodes.size());
  const auto memory = number_in(v, "GPU_PLATFORM_MEMORY_BYTES");
  const bool is_by_part = v.contains("SLURM_MEM_PER_CPU") || v.contains("SLURM_MEM_PER_GPU");
  if (memory.has_value() && !is_by_part) v["SLURM_MEM_PER_NODE"] = mebibytes(*memory);
}

void add_gpus(Variables& v) {
  const std::string indices(variable(v, "GPU_PLATFORM_GPUS"));
  if (indices.empty()) return;
  const auto count = std::ranges::count(indices, ',') + 1;
  v["SLURM_JOB_GPUS"] = indices;
  for (const char* name : {"SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE"})
    v[name] = fmt::format("{}", count);
  v["SLURM_GPUS"] = fmt::format("{}", count * std::ssize(node_names(v)));
}

constexpr std::string_view kNodePrefix = "GPU_PLATFORM_NODE_";

// The platform numbers the nodes of a job by their places in the network, Slurm by their names. All
// nodes are of this host, so any of them may be the first. Nothing changes where the numbers are
// those of the names already, as for processes of the job's tasks.
void number_nodes_by_name(Variables& v) {
  const std::vector<std::string> names = node_names(v);
  const std::vector<std::size_t> order = host_order(names);
  if (std::ranges::is_sorted(order)) return;
  Variables numbered;
  for (std::size_t place = 0; place < order.size(); ++place) {
    const std::string old_prefix = fmt::format("{}{}_", kNodePrefix, order[place]);
    for (auto at = v.lower_bound(old_prefix); at != v.end() && at->first.starts_with(old_prefix);
         ++at) {
      const std::string name = at->first.substr(old_prefix.size());
      const std::string value = name == "NODE_RANK" ? fmt::format("{}", place) : at->second;
      numbered[fmt::format("{}{}_{}", kNodePrefix, place, name)] = value;
      if (place == 0) numbered[name] = value;
    }
  }
  for (auto& [name, value] : numbered) v[name] = value;
}

// The address at which the tasks of a job find each other. Jobs on several nodes have it of the
// platform, and this is its port; all tasks are on one host. What the job's user has chosen stays.
void add_master(Variables& v) {
  constexpr std::int64_t kFirstPort = 20'000;
  constexpr std::int64_t kPorts = 10'000;
  const auto job = number_in(v, "GPU_PLATFORM_JOB_ID");
  if (!job) return;
  const std::int64_t attempt = number_in(v, "GPU_PLATFORM_ATTEMPT").value_or(1);
  v.emplace("MASTER_ADDR", "127.0.0.1");
  v.emplace("MASTER_PORT", fmt::format("{}", kFirstPort + (*job * 7 + attempt) % kPorts));
}

}  // namespace

Variables variables_of(const std::vector<std::string>& environment) {
  Variables variables;
  for (const std::string& entry : environment) {
    const std::size_t equals = entry.find('=');
    if (equals == 0 || equals == std::string::npos) continue;
    variables.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  number_nodes_by_name(variables);
  return variables;
}

std::vector<std::string> environment_of(const Variables& variables) {
  std::vector<std::string> environment;
  for (const auto& [name, value] : variables)
    environment.push_back(fmt::format("{}={}", name, value));
  return environment;
}

Variables submission_variables(const Submitted& submitted, const Resources& resources) {
  Variables v;
  v["SLURM_SUBMIT_DIR"] = submitted.directory;
  v["SLURM_SUBMIT_HOST"] = submitted.host;
  v["SLURM_CLUSTER_NAME"] = kCluster;
  v["SLURM_JOB_PARTITION"] = submitted.partition;
  v["SLURM_JOB_ACCOUNT"] = submitted.account;
  v["SLURM_JOB_QOS"] = submitted.qos;
  // Only where they were asked for, as in Slurm: scripts ask whether they are there.
  if (resources.counts_tasks) {
    for (const char* name : {"SLURM_NTASKS", "SLURM_NPROCS"})
      v[name] = fmt::format("{}", resources.tasks);
  }
  if (resources.tasks_per_node)
    v["SLURM_NTASKS_PER_NODE"] = fmt::format("{}", *resources.tasks_per_node);
  if (resources.cpus_per_task)
    v["SLURM_CPUS_PER_TASK"] = fmt::format("{}", *resources.cpus_per_task);
  if (resources.cpus_per_gpu) v["SLURM_CPUS_PER_GPU"] = fmt::format("{}", *resources.cpus_per_gpu);
  if (resources.gpus_per_task)
    v["SLURM_GPUS_PER_TASK"] = fmt::format("{}", *resources.gpus_per_task);
  if (resources.gpus_per_socket)
    v["SLURM_GPUS_PER_SOCKET"] = fmt::format("{}", *resources.gpus_per_socket);
  if (resources.memory_per_cpu)
    v["SLURM_MEM_PER_CPU"] = mebibytes(resources.memory_per_cpu->value());
  if (resources.memory_per_gpu)
    v["SLURM_MEM_PER_GPU"] = mebibytes(resources.memory_per_gpu->value());
  if (submitted.time_limit_seconds) {
    v["SLURM_SHIM_TIME_LIMIT"] = fmt::format("{}", *submitted.time_limit_seconds);
  }
  return v;
}

void add_array(Variables& v) {
  constexpr std::pair<std::string_view, const char*> kNames[] = {
      {"GPU_PLATFORM_ARRAY_ID", "SLURM_ARRAY_JOB_ID"},
      {"GPU_PLATFORM_ARRAY_INDEX", "SLURM_ARRAY_TASK_ID"},
      {"GPU_PLATFORM_ARRAY_COUNT", "SLURM_ARRAY_TASK_COUNT"},
      {"GPU_PLATFORM_ARRAY_MIN", "SLURM_ARRAY_TASK_MIN"},
      {"GPU_PLATFORM_ARRAY_MAX", "SLURM_ARRAY_TASK_MAX"},
      {"GPU_PLATFORM_ARRAY_STEP", "SLURM_ARRAY_TASK_STEP"}};
  for (const auto& [ours, slurms] : kNames) {
    const std::string value(variable(v, ours));
    if (!value.empty()) v[slurms] = value;
  }
}

void add_allocation_variables(Variables& v) {
  const std::string id(variable(v, "GPU_PLATFORM_JOB_ID"));
  v["SLURM_JOB_ID"] = id;
  v["SLURM_JOBID"] = id;
  v["SLURM_JOB_NAME"] = std::string(variable(v, "GPU_PLATFORM_JOB_NAME"));
  add_array(v);
  add_place(v);
  add_gpus(v);
}

void add_job_variables(Variables& v, const StartFacts& facts) {
  add_allocation_variables(v);
  v["SLURM_JOB_USER"] = facts.user;
  v["SLURM_JOB_UID"] = fmt::format("{}", facts.uid);
  v["SLURM_JOB_GID"] = fmt::format("{}", facts.gid);
  v["SLURM_JOB_START_TIME"] = fmt::format("{}", facts.unix_seconds);
  if (const auto limit = number_in(v, "SLURM_SHIM_TIME_LIMIT")) {
    v["SLURM_JOB_END_TIME"] = fmt::format("{}", facts.unix_seconds + *limit);
  }
  // Only of a job that was started again, as in Slurm: scripts take its presence for that.
  const auto attempt = number_in(v, "GPU_PLATFORM_ATTEMPT");
  if (attempt.value_or(1) > 1) v["SLURM_RESTART_COUNT"] = fmt::format("{}", *attempt - 1);
  if (number_in(v, "SLURM_NTASKS").value_or(1) > 1) add_master(v);
  v["ENVIRONMENT"] = "BATCH";
  for (const char* name : {"SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_GTIDS"})
    v[name] = "0";
  v["SLURM_TASK_PID"] = fmt::format("{}", facts.pid);
  add_het_variables(v, parts_in(variable(v, "SLURM_SHIM_HET")));
  std::erase_if(v, [](const auto& entry) { return entry.first.starts_with("SLURM_SHIM_"); });
}

void add_task_variables(Variables& v, const Task& task) {
  const std::string node(variable(v, "SLURM_JOB_NODELIST"));
  const std::string tasks = fmt::format("{}", task.tasks);
  for (const char* name : {"SLURM_STEP_ID", "SLURM_STEPID"}) v[name] = fmt::format("{}", task.step);
  v["SLURM_NODEID"] = "0";
  for (const char* name : {"SLURM_STEP_NUM_NODES", "SLURM_NNODES"}) v[name] = "1";
  for (const char* name : {"SLURM_NTASKS", "SLURM_NPROCS", "SLURM_STEP_NUM_TASKS",
                           "SLURM_TASKS_PER_NODE", "SLURM_STEP_TASKS_PER_NODE"}) {
    v[name] = tasks;
  }
  for (const char* name : {"SLURM_STEP_NODELIST", "SRUN_COMM_HOST"}) v[name] = node;
  v["SLURM_LAUNCH_NODE_IPADDR"] = "127.0.0.1";
  v["SLURM_PROCID"] = fmt::format("{}", task.rank);
  v["SLURM_LOCALID"] = v["SLURM_PROCID"];
  std::vector<std::uint32_t> ranks(task.tasks);
  for (std::uint32_t i = 0; i < task.tasks; ++i) ranks[i] = i;
  v["SLURM_GTIDS"] = fmt::format("{}", fmt::join(ranks, ","));
  v["SLURM_TASK_PID"] = fmt::format("{}", task.pid);
  if (task.tasks > 1) add_master(v);
}

std::string_view variable(const Variables& variables, std::string_view name) {
  const auto found = variables.find(name);
  return found == variables.end() ? std::string_view() : std::string_view(found->second);
}

std::string_view part_of_node(const Variables& variables, std::size_t node, std::string_view name) {
  return variable(variables, fmt::format("GPU_PLATFORM_NODE_{}_{}", node, name));
}

std::vector<std::string> node_names(const Variables& variables) {
  std::vector<std::string> names;
  while (true) {
    const std::string_view name = part_of_node(variables, names.size(), "GPU_PLATFORM_NODE");
    if (name.empty()) break;
    names.emplace_back(name);
  }
  if (names.empty()) names.emplace_back(variable(variables, "GPU_PLATFORM_NODE"));
  return names;
}

std::vector<std::string> host_names(std::string_view list) {
  return base::expand_names(list).value_or(std::vector<std::string>{std::string(list)});
}

}  // namespace gpu_platform::shims
