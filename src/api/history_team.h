#pragma once

#include <span>
#include <vector>

#include "api/history_question.h"
#include "base/units.h"
#include "gpu_platform/v1/telemetry.pb.h"
#include "telemetry/history.h"

// What the jobs of a team did together.

namespace gpu_platform::api {

// Returns the points of all series as those of one, over spans of the step, or of the coarsest
// series. Its mean weighs each GPU by the number of its readings.
telemetry::Series summed(std::span<const telemetry::Series> all, telemetry::MetricId metric,
                         base::Duration step);

// Puts the number of GPUs that the team's jobs had, parts as fractions, over the whole window. It
// is made of the jobs' allocations and not of readings: it has no gaps.
void add_allocated(const HistoryQuestion& question, v1::HistorySeries& out);

}  // namespace gpu_platform::api
