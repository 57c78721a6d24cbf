#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "shims/steps/step_variables.h"

// Which of a step's GPUs each of its tasks sees: --gpu-bind, --gpus-per-task. Pure.

namespace gpu_platform::shims {

struct Gpu {
  std::string index;   // on its node, as SLURM_STEP_GPUS has it
  std::string device;  // as CUDA_VISIBLE_DEVICES has it
};

// Those of the job, in its order.
std::vector<Gpu> gpus_of_job(const Variables& variables);

struct GpuBinding {
  enum class Kind { kAll, kPerTask, kSingle, kMap };
  Kind kind = Kind::kAll;
  std::uint32_t count = 1;         // GPUs per task, or tasks per GPU
  std::vector<std::uint32_t> map;  // the place of each task's GPU in the step
};

// "none", "closest", "per_task:N", "single:N", "map_gpu:0,1", each also behind "verbose,".
base::Result<GpuBinding> parse_gpu_binding(std::string_view text);

base::Result<std::vector<Gpu>> gpus_of_task(const GpuBinding& binding, const std::vector<Gpu>& step,
                                            std::uint32_t rank);

// Tells a task of the GPUs that its step has and that it sees.
void add_gpu_variables(Variables& variables, const std::vector<Gpu>& step,
                       const std::vector<Gpu>& task);

}  // namespace gpu_platform::shims
