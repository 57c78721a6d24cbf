#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "shims/options/option_table.h"
#include "shims/text/shared_gres.h"
#include "shims/text/slurm_values.h"

// What the options of sbatch and srun ask for, all together. The nodes of a job have equal parts.
// Pure.

namespace gpu_platform::shims {

struct Resources {
  std::uint32_t nodes = 1;
  GpuCount gpus;                             // on each node; rounded up where they cannot be equal
  std::optional<SharedGres> part;            // of its one GPU
  std::optional<std::uint32_t> gpus_in_all;  // as asked for by --gpus or --gpus-per-task
  std::uint32_t tasks = 1;                   // in all
  bool counts_tasks = false;                 // some option says how many; else one for each node
  std::optional<std::uint32_t> tasks_per_node;   // as it was asked for
  std::optional<std::uint32_t> cpus_per_task;    // as it was asked for
  std::optional<std::uint32_t> cpus_per_gpu;     // as it was asked for
  std::optional<std::uint32_t> gpus_per_task;    // as it was asked for
  std::optional<std::uint32_t> gpus_per_socket;  // as it was asked for
  std::optional<std::uint32_t> cpus;          // on each node; absent: the node's share for its GPUs
  std::optional<base::Bytes> memory;          // on each node; absent: the node's share
  std::optional<base::Bytes> memory_per_cpu;  // as it was asked for
  std::optional<base::Bytes> memory_per_gpu;  // as it was asked for
};

// Errors name the option. Warnings are appended.
base::Result<Resources> resources_of(const Settings& settings, std::vector<std::string>& warnings);

// What a node has, of the GPUs that the job may have.
struct NodeSize {
  std::uint32_t gpus = 0;        // of all types
  std::uint32_t gpus_alike = 0;  // of the type that it has most of
  std::uint32_t cpus = 0;
};

// Whether the job has several GPUs or tasks and no option says on how many nodes.
bool leaves_nodes_open(const Settings& settings, const Resources& resources);

// The fewest of these nodes that hold the GPUs and tasks of such a job in equal parts; one where
// none do.
std::uint32_t fewest_nodes(const Resources& resources, std::span<const NodeSize> nodes);

// Refuses what cannot be divided equally among the nodes of a job.
base::Status check_equal_parts(const Resources& resources);

}  // namespace gpu_platform::shims
