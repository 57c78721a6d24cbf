#include "shims/steps/step_places.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/parse.h"
#include "shims/text/host_list.h"
#include "shims/text/slurm_values.h"

namespace gpu_platform::shims {

namespace {

std::uint32_t cpus_in(std::string_view text) {
  return static_cast<std::uint32_t>(base::parse_count(text, 1, UINT32_MAX).value_or(1));
}

std::optional<std::uint64_t> memory_of_job(const Variables& variables) {
  const auto read =
      base::parse_count(variable(variables, "GPU_PLATFORM_MEMORY_BYTES"), 1, INT64_MAX);
  return read ? std::optional(*read) : std::nullopt;
}

Variables variables_of_node(const Variables& variables, std::size_t node) {
  const std::string prefix = fmt::format("GPU_PLATFORM_NODE_{}_", node);
  Variables own;
  for (auto at = variables.lower_bound(prefix);
       at != variables.end() && at->first.starts_with(prefix); ++at) {
    own.emplace(at->first.substr(prefix.size()), at->second);
  }
  return own;
}

std::vector<Gpu> gpus_in(std::string_view gpu_indices, std::string_view uuids) {
  const auto indices = comma_separated(gpu_indices);
  const auto devices = comma_separated(uuids);
  std::vector<Gpu> gpus;
  for (std::size_t i = 0; i < indices.size() && i < devices.size(); ++i)
    gpus.push_back({indices[i], devices[i]});
  return gpus;
}

}  // namespace

std::vector<StepNode> nodes_of_job(const Variables& variables) {
  const std::vector<std::string> names = node_names(variables);
  if (names.size() == 1) {
    return {{names.front(),
             gpus_of_job(variables),
             cpus_in(variable(variables, "GPU_PLATFORM_CPUS")),
             memory_of_job(variables),
             {}}};
  }
  std::vector<StepNode> nodes;
  for (std::size_t i = 0; i < names.size(); ++i) {
    Variables own = variables_of_node(variables, i);
    nodes.push_back(
        {names[i],
         gpus_in(variable(own, "GPU_PLATFORM_GPUS"), variable(own, "CUDA_VISIBLE_DEVICES")),
         cpus_in(variable(own, "GPU_PLATFORM_CPUS")),
         memory_of_job(own),
         {}});
    nodes.back().variables = std::move(own);
  }
  return nodes;
}

TaskPlace place_of(const Layout& layout, std::uint32_t rank) {
  for (std::size_t node = 0; node < layout.size(); ++node) {
    const auto found = std::ranges::find(layout[node], rank);
    if (found != layout[node].end())
      return {node, static_cast<std::uint32_t>(found - layout[node].begin())};
  }
  return {};
}

void add_place_variables(Variables& v, const StepPlaces& places, const TaskPlace& place) {
  const StepNode& node = places.nodes[place.node];
  for (const auto& [name, value] : node.variables) v[name] = value;
  if (!node.variables.empty()) {
    v["SLURM_CPUS_ON_NODE"] = fmt::format("{}", node.cpus);
    v["SLURM_JOB_GPUS"] = std::string(variable(node.variables, "GPU_PLATFORM_GPUS"));
    if (v["SLURM_JOB_GPUS"].empty()) v.erase("SLURM_JOB_GPUS");
  }
  for (const char* name : {"SLURMD_NODENAME", "SLURM_TOPOLOGY_ADDR"}) v[name] = node.name;
  std::vector<std::string> names;
  for (const StepNode& each : places.nodes) names.push_back(each.name);
  v["SLURM_STEP_NODELIST"] = host_list_in_order(names);
  v["SRUN_COMM_HOST"] = std::string(variable(v, "GPU_PLATFORM_NODE_0_GPU_PLATFORM_NODE"));
  if (v["SRUN_COMM_HOST"].empty()) v["SRUN_COMM_HOST"] = names.front();
  for (const char* name : {"SLURM_STEP_NUM_NODES", "SLURM_NNODES"})
    v[name] = fmt::format("{}", names.size());
  for (const char* name : {"SLURM_TASKS_PER_NODE", "SLURM_STEP_TASKS_PER_NODE"})
    v[name] = per_node_text(counts_of(places.layout));
  v["SLURM_NODEID"] = fmt::format("{}", place.node);
  v["SLURM_LOCALID"] = fmt::format("{}", place.local);
  v["SLURM_GTIDS"] = fmt::format("{}", fmt::join(places.layout[place.node], ","));
}

}  // namespace gpu_platform::shims
