#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// The CPUs that each task of a step may use: --cpu-bind. Pure.

namespace gpu_platform::shims {

using Cpus = std::vector<std::uint32_t>;  // numbers of the system, ascending

struct CpuBinding {
  enum class Kind {
    kNone,  // all CPUs of the job
    kOwn,   // each task has CPUs of its own: cores, threads, rank
    kMap,
    kMask,
  };
  Kind kind = Kind::kNone;
  bool is_verbose = false;
  std::vector<Cpus> lists;  // of kMap and kMask, by task; used again from the first one on
};

// "none", "cores", "threads", "rank", "map_cpu:0,4", "mask_cpu:0x3*2", each also behind "verbose,"
// or "quiet,", which may stand alone.
base::Result<CpuBinding> parse_cpu_binding(std::string_view text);

// Nothing: the task is left as it is. `of_step` are the step's CPUs, `each` what a task has of
// them. A CPU that the job may not use is an error.
base::Result<std::optional<Cpus>> cpus_of_task(const CpuBinding& binding, const Cpus& of_step,
                                               std::uint32_t each, std::uint32_t rank);

// What Slurm prints of a task with "verbose".
struct BoundTask {
  std::string node;
  std::uint32_t rank = 0;
  std::int64_t pid = 0;
};
std::string cpu_binding_line(const CpuBinding& binding, const BoundTask& task, const Cpus& cpus);

}  // namespace gpu_platform::shims
