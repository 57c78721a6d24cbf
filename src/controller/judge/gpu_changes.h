#pragma once

#include <optional>
#include <vector>

#include "base/result.h"
#include "controller/judge/events.h"
#include "controller/state.h"
#include "execution/engine.h"
#include "model/command.h"

// What operators do with GPUs and nodes, and what is seen on GPUs beside jobs.

namespace gpu_platform::controller {

struct GpuChange {
  std::vector<model::GpuRef> gpus;  // that were meant
  Events events;                    // none where all of it is so already
};
base::Result<GpuChange> judge_gpus(const State& state, const model::Caller& caller,
                                   const model::ChangeGpus& command);

// Nothing where it is no news, or of a GPU that is not known.
std::optional<model::Event> judge_unmanaged_processes(
    const State& state, const execution::UnmanagedProcessesObserved& seen);
// Those that are there when the policy changes. Such as were ignored are told again by the probes.
Events judge_unmanaged_processes_again(const State& state);

}  // namespace gpu_platform::controller
