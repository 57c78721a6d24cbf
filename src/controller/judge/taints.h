#pragma once

#include <optional>

#include "controller/judge/events.h"
#include "controller/state.h"
#include "execution/engine.h"

// What parties other than people say of nodes and GPUs: who keeps them from work. And the end of
// what people said, if they gave one.

namespace gpu_platform::controller {

// Returns nothing if it is no news, or the node or the GPU is not known.
std::optional<model::Event> judge_taint(const State& state, const execution::TaintObserved& seen);

// The same of processes that belong to no job: the policy decides whether they keep the GPU from
// work.
std::optional<model::Event> judge_unmanaged_processes(
    const State& state, const execution::UnmanagedProcessesObserved& seen);
// Judges the processes that are present when the policy changes. The probes report again what was
// ignored and lasts.
Events judge_gpus_again(const State& state);

// Returns the lifting of the next operator's taint whose time is over; nothing if there is none.
std::optional<model::Event> next_ended_taint(const State& state, base::Instant now);

}  // namespace gpu_platform::controller
