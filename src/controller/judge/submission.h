#pragma once

#include <optional>

#include "base/result.h"
#include "base/units.h"
#include "controller/judge/feasibility.h"
#include "controller/state.h"
#include "model/command.h"
#include "model/event.h"
#include "store/store.h"

namespace gpu_platform::controller {

// Returns the answer to a submission and its events. There are no events if the job is known
// already or the submission was a dry run.
struct Submission {
  model::CommandReply reply;
  std::optional<model::JobSubmitted> event;
};

// Refuses new work while the headroom is kReserved.
base::Result<Submission> judge_submission(const State& state, Feasibility& feasibility,
                                          const model::Caller& caller,
                                          const model::SubmitJob& command, base::Instant now,
                                          store::Headroom headroom);

}  // namespace gpu_platform::controller
