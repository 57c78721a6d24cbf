#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "base/units.h"
#include "model/job.h"
#include "scheduling/order/rank.h"
#include "scheduling/predict/predicted_starts.h"
#include "scheduling/predict/prediction_scores.h"
#include "views/planning_view.h"

// Predicted starts of waiting jobs, computed on request. planned_starts.h has the planned starts.

namespace gpu_platform::views {

// The number of waiting jobs that a prediction includes: there is none for the jobs behind them.
inline constexpr std::size_t kMaxPredictedInQueue = 1000;

// Predictions of starts as they are simulated; scheduling::StartCorrections makes of them what is
// told.
struct PredictedQueue {
  base::Instant made_at;
  scheduling::PredictedStarts prediction;
  std::map<model::JobId, std::size_t> jobs_ahead;  // of all QUEUED jobs
};

// Predicts the first kMaxPredictedInQueue jobs of the queue, none of them if the policy keeps no
// places.
PredictedQueue predict_queue(PlanningView& view, base::Instant now);

// Predicts only this job, which may or may not be in the queue, behind all jobs that go before it.
// Nothing if these are kMaxPredictedInQueue or more.
scheduling::PredictedStarts predict_one(PlanningView& view, const scheduling::WaitingJob& job,
                                        const scheduling::Rank& rank, base::Instant now);

}  // namespace gpu_platform::views
