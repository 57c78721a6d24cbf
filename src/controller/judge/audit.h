#pragma once

#include <span>

#include "controller/judge/events.h"
#include "controller/state.h"
#include "model/command.h"
#include "store/store.h"

// The audit trail of commands: what a command did is read off the events that it led to, so that
// nothing can be done that the trail does not know.

namespace gpu_platform::controller {

// What the trail says of a command that led to these events and ended these jobs; the state is the
// one after them.
Events judge_trail(const State& state, const model::Command& command,
                   std::span<const model::EventRecord> events, std::span<const model::Job> ended);

// Calls that the door tells of. Refused ones do not use up what a full disk keeps for the endings
// of jobs.
Events judge_calls(const model::RecordCalls& command, store::Headroom headroom);

}  // namespace gpu_platform::controller
