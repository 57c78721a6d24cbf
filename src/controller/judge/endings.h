#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "controller/judge/events.h"
#include "controller/state.h"
#include "execution/engine.h"

// The reports of engines about attempts, and what they mean for the jobs. Late, repeated and
// impossible reports change nothing: each names its attempt, and only an attempt that can still
// make the step makes it.

namespace gpu_platform::controller {

// Returns nothing if the start is known already or was given up.
std::optional<model::Event> judge_start(const State& state, const execution::Started& seen,
                                        base::Instant now);
// Returns whether the attempt was given up as lost but is still alive: its job may run elsewhere by
// now.
bool is_given_up(const State& state, model::AttemptId attempt);

// A job's attempt failed, and GPUs are to blame.
struct HardwareBlame {
  std::vector<std::string> suspects;  // UUIDs
  std::string text;                   // "GPU 0 of node n1 failed: XID 79 …"
};

// Returns the events of the end and of its consequences for the job. None if the end is known. A
// job that is innocent (`blame`) is queued again at once, which counts as neither failure nor loss.
Events judge_end(const State& state, const execution::Ended& seen, base::Instant now,
                 const std::optional<HardwareBlame>& blame = {});
// Gives up an attempt on a lost node that will never report. No events if its end is known.
Events judge_loss(const State& state, model::AttemptId attempt, base::Instant now);
// Releases what the attempt held, but only after its end. If the report of the end is late or lost,
// the engine repeats both when it is asked, so an end that is known somewhere is never called
// unknown.
Events judge_cleaning(const State& state, const execution::Cleaned& seen);

}  // namespace gpu_platform::controller
