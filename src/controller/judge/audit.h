#pragma once

#include <span>

#include "controller/judge/events.h"
#include "controller/state.h"
#include "model/command.h"
#include "store/store.h"

// The audit trail of commands. An entry is derived from the events that the command led to, so no
// command can do anything that the trail does not know.

namespace gpu_platform::controller {

// Returns the entries of a command that led to these events and ended these jobs; the state is the
// one after them.
Events judge_trail(const State& state, const model::Command& command,
                   std::span<const model::EventRecord> events, std::span<const model::Job> ended);

// Records calls that the API reports. Refused calls do not use the reserve that a full disk keeps
// for the endings of jobs.
Events judge_calls(const model::RecordCalls& command, store::Headroom headroom);

}  // namespace gpu_platform::controller
