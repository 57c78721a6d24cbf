#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "model/job.h"

// The partitions and qualities of service that a site defines for Slurm's commands. The commands
// translate them into ordinary requests; the core does not have them.

namespace gpu_platform::config {

struct SlurmPartition {
  std::string name;
  bool is_default = false;
  std::vector<std::string> gpu_types;            // canonical, of its nodes; empty: all nodes
  std::optional<model::PriorityClass> priority;  // of its jobs; absent: the usual one
  std::optional<base::Duration> max_time;
  std::optional<base::Duration> default_time;
  std::optional<std::uint32_t> max_gpus;   // of one job
  std::optional<std::uint32_t> max_nodes;  // of one job

  friend bool operator==(const SlurmPartition&, const SlurmPartition&) = default;
};

struct SlurmQos {
  std::string name;
  std::optional<model::PriorityClass> priority;
  std::optional<base::Duration> max_time;
  std::optional<std::uint32_t> max_gpus;  // of one job

  friend bool operator==(const SlurmQos&, const SlurmQos&) = default;
};

// Empty lists: the site gives no names, and the commands have their usual ones.
struct SlurmNames {
  std::vector<SlurmPartition> partitions;  // in the site's order; one is the default
  std::vector<SlurmQos> qos;
  std::uint32_t shards_per_gpu = 4;  // of --gres=shard

  friend bool operator==(const SlurmNames&, const SlurmNames&) = default;
};

}  // namespace gpu_platform::config
