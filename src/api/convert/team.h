#pragma once

#include "api/convert/job.h"
#include "base/result.h"
#include "gpu_platform/v1/teams.pb.h"
#include "model/command.h"
#include "model/run_time_team.h"

// Teams between their messages and the model.

namespace gpu_platform::api {

// The error names a key that is none, or that is given twice.
base::Result<model::SetTeam> to_model(const v1::SetTeamRequest& request);

// `team`: as it is in force. Fills the cleared message, but for the coordinators.
void to_proto(const model::Team& team, const model::TeamSources& sources, v1::Team& out);

}  // namespace gpu_platform::api
