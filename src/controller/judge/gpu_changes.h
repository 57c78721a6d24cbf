#pragma once

#include <optional>
#include <vector>

#include "base/result.h"
#include "controller/judge/events.h"
#include "controller/state.h"
#include "execution/engine.h"
#include "model/command.h"

// The actions of operators on GPUs and nodes, and the unmanaged processes on GPUs.

namespace gpu_platform::controller {

struct GpuChange {
  std::vector<model::GpuRef> gpus;  // the GPUs that were meant
  Events events;                    // none if all of it is so already
};
base::Result<GpuChange> judge_gpus(const State& state, const model::Caller& caller,
                                   const model::ChangeGpus& command);

// Returns nothing if it is no news or the GPU is not known.
std::optional<model::Event> judge_unmanaged_processes(
    const State& state, const execution::UnmanagedProcessesObserved& seen);
// The same for a GPU that is not ours to give. The policy has no say in it.
std::optional<model::Event> judge_unavailable(const State& state,
                                              const execution::GpuUnavailableObserved& seen);
// Judges the processes that are present when the policy changes. The probes report again those that
// were ignored.
Events judge_unmanaged_processes_again(const State& state);

}  // namespace gpu_platform::controller
