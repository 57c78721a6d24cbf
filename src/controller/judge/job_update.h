#pragma once

#include <optional>

#include "base/result.h"
#include "base/units.h"
#include "controller/state.h"
#include "model/command.h"
#include "model/event.h"

namespace gpu_platform::controller {

// What of the command is new to the one job that it names; nothing where all of it is so already.
base::Result<std::optional<model::JobChanged>> judge_update(const State& state,
                                                            const model::Caller& caller,
                                                            const model::UpdateJob& command,
                                                            base::Instant now);

}  // namespace gpu_platform::controller
