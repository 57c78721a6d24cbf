#pragma once

#include <optional>

#include "base/result.h"
#include "base/units.h"
#include "controller/state.h"
#include "model/command.h"
#include "model/event.h"
#include "store/store.h"

// Teams that are managed at run time (model/run_time_team.h), and the rights to change them.

namespace gpu_platform::controller {

// An administrator may change all that the configuration does not set. A coordinator of the team
// may invite and remove members and lower its limits, and take that back. Returns nothing if
// nothing changes, and a removal if nothing is left beside the configuration.
base::Result<std::optional<model::Event>> judge_team(const State& state,
                                                     const model::Caller& caller,
                                                     const model::SetTeam& command,
                                                     base::Instant now, store::Headroom headroom);

// The invited caller becomes a member of the team, or the invitation ends. Accepting
// is refused while the configuration names the members of the team. Returns a removal if nothing is
// left beside the configuration.
base::Result<model::Event> judge_answer(const State& state, const model::Caller& caller,
                                        const model::AnswerInvitation& command, base::Instant now,
                                        store::Headroom headroom);

// Refused while the configuration names the team, and while jobs or teams are in it. Cost: all
// jobs.
base::Result<model::TeamRemoved> judge_removal(const State& state, const model::Caller& caller,
                                               const model::RemoveTeam& command);

}  // namespace gpu_platform::controller
