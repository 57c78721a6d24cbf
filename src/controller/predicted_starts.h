#pragma once

#include <cstddef>
#include <vector>

#include "base/units.h"
#include "controller/planning_view.h"
#include "model/job.h"
#include "scheduling/order/rank.h"
#include "scheduling/predict/predicted_starts.h"

// Predicted starts of waiting jobs, computed on request. planned_starts.h has the planned starts.

namespace gpu_platform::controller {

// Waiting jobs that a prediction reckons with: nothing is predicted of those behind.
inline constexpr std::size_t kMaxPredictedInQueue = 1000;

// What is expected is never later than what is promised.
void limit_to(scheduling::StartQuantiles& predicted, base::Instant promised);

// The attempt as a prediction sees it; it holds something. What it points to is the job's.
scheduling::RunningJob running_job(const model::Job& job, const model::Attempt& attempt);

// Of the first kMaxPredictedInQueue of the queue. Nothing where the policy reserves nothing.
scheduling::PredictedStarts predict_queue(PlanningView& view, base::Instant now);

// Of the job alone, which may or may not be in the queue, behind those of a lower rank. Nothing
// where kMaxPredictedInQueue or more are before it.
scheduling::PredictedStarts predict_one(PlanningView& view, const scheduling::WaitingJob& job,
                                        const scheduling::Rank& rank, base::Instant now);

}  // namespace gpu_platform::controller
