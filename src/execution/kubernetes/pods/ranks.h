#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "execution/engine.h"
#include "execution/kubernetes/settings.h"

// The pods of an attempt, before they are asked for, and the environment of each. Pure.

namespace gpu_platform::execution {

// The ranks of an attempt: one for each node, or one for each GPU with per_gpu (then a rank has one
// GPU and its part of the node's CPUs and memory); only the first node's with first_node_only.
struct Rank {
  std::uint32_t node = 0;    // index into StartOrder::nodes
  std::uint32_t local = 0;   // among the ranks of its node
  std::uint32_t locals = 1;  // ranks of its node
  std::vector<LaunchGpu> gpus;
  std::uint32_t cpus = 0;
  base::Bytes memory;
};
std::vector<Rank> ranks_of(const StartOrder& order);

// The host name of a rank's pod in its gang's service.
std::string host_name(std::uint32_t rank);

// The variables of a rank: the submitted ones, and the platform's, which always win
// (GPU_PLATFORM_*, MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE, …). Never CUDA_VISIBLE_DEVICES: a
// container has its own devices alone. MASTER_ADDR is rank 0's name in the gang's service. CPUs,
// memory and GPUs are those of the rank. NAME=VALUE each, ascending by name.
std::vector<std::string> pod_environment(const StartOrder& order, std::uint32_t rank,
                                         std::string_view submitted,
                                         const KubernetesSettings& settings);

}  // namespace gpu_platform::execution
