#pragma once

#include <vector>

#include "base/result.h"
#include "controller/judge/events.h"
#include "controller/state.h"
#include "model/command.h"

// The actions of operators on GPUs and nodes.

namespace gpu_platform::controller {

struct GpuChange {
  std::vector<model::GpuRef> gpus;  // the GPUs that were meant
  Events events;                    // none if nothing changes
};
base::Result<GpuChange> judge_gpus(const State& state, const model::Caller& caller,
                                   const model::ChangeGpus& command, base::Instant now);

}  // namespace gpu_platform::controller
