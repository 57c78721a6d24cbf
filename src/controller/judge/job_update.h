#pragma once

#include <optional>

#include "base/result.h"
#include "base/units.h"
#include "controller/judge/feasibility.h"
#include "controller/state.h"
#include "model/command.h"
#include "model/event.h"

namespace gpu_platform::controller {

// Returns the changes that the command brings to the one job that it names; nothing if no value
// changes.
base::Result<std::optional<model::JobChanged>> judge_update(const State& state,
                                                            Feasibility& feasibility,
                                                            const model::Caller& caller,
                                                            const model::UpdateJob& command,
                                                            base::Instant now);

}  // namespace gpu_platform::controller
