#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "gpu_platform/v1/jobs.pb.h"

// The GPUs, CPUs and memory of a job as Slurm's commands tell of them.

namespace gpu_platform::shims {

// What GPUs were asked for by: --gpus, --gpus-per-node and --gres, --gpus-per-task, …
enum class GpusPer { kJob, kNode, kTask, kSocket };
// "gpu:8" or "gpu:h100:8"; empty where none were asked for in that way. Jobs of other
// commands ask for each node.
std::string gpus_asked(const v1::Job& job, GpusPer per);

// GPUs that it asks for, on all its nodes.
std::int64_t gpus_of_request(const v1::Job& job);
// What it has on all its nodes, else what it asks for.
std::optional<std::int64_t> cpus_of(const v1::Job& job);
std::optional<std::int64_t> memory_of(const v1::Job& job);
std::int64_t cpus_of_each_node(const v1::Job& job);
std::int64_t cpus_of_each_task(const v1::Job& job);
// Its memory as Slurm tells it: of each CPU where that was asked for (--mem-per-cpu), else of each
// node. Empty where the job neither has nor asks for any.
struct MemoryShare {
  std::int64_t bytes = 0;
  bool is_of_each_cpu = false;
};
std::optional<MemoryShare> memory_share_of(const v1::Job& job);

// "cpu=8,mem=64G,node=1,billing=11,gres/gpu=2", with that billing (billing_weights.h).
std::string trackable(const v1::Job& job, std::int64_t billing);

// "64G", "62.50G", "512M": as Slurm writes memory.
std::string slurm_memory(std::int64_t bytes);

}  // namespace gpu_platform::shims
