#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

// Values as Slurm's options write them, and times as its commands print them (sbatch(1),
// squeue(1)). Pure. Errors carry no field: the caller knows which option it was.

namespace gpu_platform::shims {

// "90" (minutes), "M:S", "H:M:S", "D-", "D-H", "D-H:M", "D-H:M:S", rounded up to whole minutes;
// nothing for UNLIMITED, INFINITE, -1 and zero.
base::Result<std::optional<base::Duration>> parse_time_limit(std::string_view text);

// "4000" (MiB), "16G", "16GB" and so on with K, M, G, T, all binary. Zero means all of the node's.
base::Result<base::Bytes> parse_memory(std::string_view text);

// A whole number from `least` on.
base::Result<std::uint32_t> parse_number(std::string_view text, std::uint32_t least);

// GPUs: how many, and of which type.
struct GpuCount {
  std::uint32_t count = 0;
  std::string type;  // empty: any

  friend bool operator==(const GpuCount&, const GpuCount&) = default;
};

// Reads the value of --gpus, --gpus-per-node and --gpus-per-task: "2", "a100:2".
base::Result<GpuCount> parse_gpus(std::string_view text);

// Reads the value of --gres: "gpu", "gpu:2", "gpu:a100:2", "none". Other resources are left out and
// named in `others`.
base::Result<GpuCount> parse_gres(std::string_view text, std::vector<std::string>& others);

struct NodeCount {
  std::uint32_t least = 1;
  std::uint32_t most = 1;

  friend bool operator==(const NodeCount&, const NodeCount&) = default;
};

// Reads the value of --nodes: "1", "1-4", "1k".
base::Result<NodeCount> parse_nodes(std::string_view text);

// "1:05", "2:01:05", "1-02:01:05": squeue's. Negative counts as zero.
std::string short_elapsed(base::Duration duration);
// "00:01:05", "1-02:01:05": sacct's and scontrol's.
std::string long_elapsed(base::Duration duration);

// The class of priority of such a name: "high", "medium" also for "normal"; nothing for others.
std::optional<std::string> priority_of_qos(std::string_view name);
// Slurm's niceness as a class: "low" above zero, "medium" at zero. Below zero it is refused.
base::Result<std::string> priority_of_nice(std::string_view text);

// Letters of the alphabet in one case.
std::string lower_case(std::string_view text);
std::string upper_case(std::string_view text);

// Parts between commas; empty ones are left out.
std::vector<std::string> comma_separated(std::string_view text);
// Whether the list between commas has the value.
bool is_listed(std::string_view value, std::string_view list);

}  // namespace gpu_platform::shims
