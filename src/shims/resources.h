#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "shims/options.h"
#include "shims/values.h"

// What the options of sbatch and srun ask for, all together, on the one node that a job has. Pure.

namespace gpu_platform::shims {

struct Resources {
  GpuCount gpus;
  std::uint32_t tasks = 1;
  std::optional<std::uint32_t> tasks_per_node;  // as it was asked for
  std::optional<std::uint32_t> cpus_per_task;   // as it was asked for
  std::optional<std::uint32_t> cpus;            // of the job; absent: the node's share for its GPUs
  std::optional<base::Bytes> memory;            // of the job; absent: the node's share
  std::optional<base::Bytes> memory_per_cpu;    // as it was asked for
  std::optional<base::Bytes> memory_per_gpu;    // as it was asked for
};

// Errors name the option. Warnings are appended.
base::Result<Resources> resources_of(const Settings& settings, std::vector<std::string>& warnings);

}  // namespace gpu_platform::shims
