#pragma once

#include <vector>

#include "base/units.h"
#include "scheduling/backfill/running_ends.h"
#include "scheduling/backfill/timeline.h"
#include "scheduling/plan_cycle.h"

namespace gpu_platform::scheduling {

// Decides about the attempts that were to yield by `now`, given the places that were kept in this
// very cycle. An attempt is stopped if one of these places would be free without it, and the first
// such place is due within the grace. If that cannot be told yet, because others are still to be
// stopped for a place, it is left for a later cycle. The order is that of their ends. Leaves the
// trial as it was.
//
// Cost: for each attempt and each place the ends before that.
std::vector<Yield> judge_yielding(Timeline& timeline, const RunningEnds& running,
                                  const std::vector<PlannedStart>& kept, base::Instant now,
                                  base::Duration grace);

// The moment at which one is told to stop that is to be gone at `at`, the grace before it.
base::Instant grace_before(base::Instant at, base::Duration grace);

}  // namespace gpu_platform::scheduling
