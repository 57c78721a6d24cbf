#pragma once

#include <map>

#include "base/units.h"
#include "controller/planning_view.h"
#include "model/ids.h"

// Planned starts of waiting jobs, by hard limits: every job takes all of its time, nothing fails
// and no job of higher rank comes. So jobs mostly start earlier. A time in the past, or now, means
// that what a job waits for may be released at any time.

namespace gpu_platform::controller {

using PlannedStarts = std::map<model::JobId, base::Instant>;

// Of those that had a planned start in the scheduler's last cycle: the first in the queue that do
// not fit, policy.backfill_depth of them. Cost: theirs.
PlannedStarts last_planned_starts(const Snapshot& snapshot);

// Of all QUEUED jobs, each with a planned start behind those before it, as far as that can be
// worked out in about a second on one core; those behind and those for which no end of others makes
// room are left out. None where the policy reserves nothing. Cost: scheduling::Timeline.
PlannedStarts plan_all_starts(PlanningView& view);

}  // namespace gpu_platform::controller
