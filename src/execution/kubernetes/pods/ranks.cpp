#include "execution/kubernetes/pods/ranks.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.h"
#include "execution/job_variables.h"
#include "execution/kubernetes/names.h"
#include "model/job_spec.h"

namespace gpu_platform::execution {

namespace {

void add_ranks_per_gpu(std::vector<Rank>& ranks, const StartOrder& order, std::uint32_t node) {
  const LaunchNode& of_node = order.nodes[node];
  const auto count = static_cast<std::uint32_t>(of_node.gpus.size());
  for (std::uint32_t local = 0; local < count; ++local) {
    Rank rank;
    rank.node = node;
    rank.local = local;
    rank.locals = count;
    rank.gpus = {of_node.gpus[local]};
    rank.cpus = of_node.cpus / count + (local < of_node.cpus % count ? 1 : 0);
    rank.memory = base::Bytes(of_node.memory.value() / count);
    ranks.push_back(std::move(rank));
  }
}

// What would choose devices for a container that has its own alone, or would open those of others
// to it where a container runtime reads it.
void remove_device_choice(Variables& variables) {
  for (const std::string_view name :
       {"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES"}) {
    if (const auto found = variables.find(name); found != variables.end()) variables.erase(found);
  }
}

void set_resources(Variables& variables, const StartOrder& order, const Rank& rank) {
  variables["GPU_PLATFORM_NODE"] = order.nodes[rank.node].node_name;
  variables["GPU_PLATFORM_GPUS"] = fmt::format("{}", fmt::join(indices_of(rank.gpus), ","));
  variables["GPU_PLATFORM_CPUS"] = fmt::format("{}", rank.cpus);
  variables["GPU_PLATFORM_MEMORY_BYTES"] = fmt::format("{}", rank.memory.value());
}

// Alone it needs no service, and so has no name in one.
std::string master_of(const StartOrder& order, std::size_t ranks,
                      const KubernetesSettings& settings) {
  if (ranks == 1) return "127.0.0.1";
  return fmt::format("{}.{}", host_name(0), service_name(settings.cluster, order.attempt));
}

void set_gang(Variables& variables, const StartOrder& order, const std::vector<Rank>& ranks,
              std::uint32_t own, const KubernetesSettings& settings) {
  std::vector<std::string_view> nodes;
  nodes.reserve(order.nodes.size());
  for (const LaunchNode& node : order.nodes) nodes.push_back(node.node_name);
  const Rank& rank = ranks[own];
  variables["MASTER_ADDR"] = master_of(order, ranks.size(), settings);
  variables["MASTER_PORT"] = fmt::format("{}", gang_port(order.attempt));
  variables["NNODES"] = fmt::format("{}", nodes.size());
  variables["NODE_RANK"] = fmt::format("{}", rank.node);
  variables["GPU_PLATFORM_NODELIST"] = fmt::format("{}", fmt::join(nodes, ","));
  if (!order.spec->per_gpu) return;
  variables["RANK"] = fmt::format("{}", own);
  variables["WORLD_SIZE"] = fmt::format("{}", ranks.size());
  variables["LOCAL_RANK"] = fmt::format("{}", rank.local);
  variables["LOCAL_WORLD_SIZE"] = fmt::format("{}", rank.locals);
}

}  // namespace

std::vector<Rank> ranks_of(const StartOrder& order) {
  std::vector<Rank> ranks;
  const std::size_t nodes = order.spec->first_node_only
                                ? std::min<std::size_t>(1, order.nodes.size())
                                : order.nodes.size();
  for (std::uint32_t i = 0; i < nodes; ++i) {
    const LaunchNode& node = order.nodes[i];
    if (order.spec->per_gpu && !node.gpus.empty()) {
      add_ranks_per_gpu(ranks, order, i);
    } else {
      ranks.push_back({i, 0, 1, node.gpus, node.cpus, node.memory});
    }
  }
  return ranks;
}

std::string host_name(std::uint32_t rank) {
  return fmt::format("rank-{}", rank);
}

std::vector<std::string> pod_environment(const StartOrder& order, std::uint32_t rank,
                                         std::string_view submitted,
                                         const KubernetesSettings& settings) {
  const std::vector<Rank> ranks = ranks_of(order);
  CHECK(rank < ranks.size());
  Variables variables = parse_variables(submitted);
  remove_device_choice(variables);
  set_identity(variables, order);
  set_resources(variables, order, ranks[rank]);
  if (order.spec->per_gpu || model::is_gang(order.spec->request)) {
    set_gang(variables, order, ranks, rank, settings);
  }
  // Images of CUDA ask for all GPUs, and a container runtime may listen to that. The kubelet's
  // device plugins answer with this variable, and what a pod says of it would win.
  const bool plugin_sets_it = settings.devices == DeviceMode::kCounts && !ranks[rank].gpus.empty();
  if (!plugin_sets_it) variables["NVIDIA_VISIBLE_DEVICES"] = "void";
  return entries_of(variables);
}

}  // namespace gpu_platform::execution
