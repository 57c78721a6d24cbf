#pragma once

#include <map>

#include "base/units.h"
#include "model/ids.h"
#include "views/planning_view.h"

// Planned starts of waiting jobs, by hard limits: every job takes all of its time, nothing fails
// and no job of higher rank comes. So jobs mostly start earlier. A time in the past, or now, means
// that what a job waits for may be released at any time.

namespace gpu_platform::views {

using PlannedStarts = std::map<model::JobId, base::Instant>;

// Returns the planned starts of the scheduler's last cycle: those of the first jobs in the queue
// that do not fit, policy.backfill_depth of them. Cost: their number.
PlannedStarts last_planned_starts(const controller::Snapshot& snapshot);

// Returns the job whose planned start is promised (promised_start.h), as published. Invalid: none.
model::JobId guaranteed_start(const controller::Snapshot& snapshot);

// Returns the planned starts of all QUEUED jobs, each behind those before it, as far as that can be
// computed in about a second on one core. Jobs behind that, and jobs for which no end of others
// makes room, are left out. None if the policy keeps no places. Cost: scheduling::Timeline.
PlannedStarts plan_all_starts(PlanningView& view);

}  // namespace gpu_platform::views
