#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/units.h"
#include "model/allocation.h"
#include "model/ids.h"
#include "model/job.h"
#include "model/job_spec.h"
#include "model/policy.h"
#include "model/start_prediction.h"
#include "scheduling/plan_cycle.h"
#include "scheduling/predict/run_history.h"
#include "scheduling/predict/start_calibration.h"
#include "scheduling/waiting_queue.h"

// Predicted starts of waiting jobs: the cycle's own calculation, with the predicted run times of
// running jobs, and of the jobs before them in the queue, instead of their time limits.

namespace gpu_platform::scheduling {

// An attempt that holds resources.
struct RunningJob {
  model::AttemptId attempt;
  const model::JobSpec* spec = nullptr;           // not owned
  const model::Allocation* allocation = nullptr;  // not owned
  base::Instant since;       // start of its program, or the time at which that was requested
  base::Instant latest_end;  // as in RunningEnds
};
// The attempt as a prediction sees it; it holds something. What it points to is the job's.
RunningJob running_job(const model::Job& job, const model::Attempt& attempt);

struct PredictedStarts {
  // kHardLimits: there are no predictions, and `starts` is empty.
  model::PredictionBasis basis = model::PredictionBasis::kHardLimits;
  std::uint64_t runs = 0;  // of the history that the prediction rests upon
  // As simulated: what past errors say of them is not in them (start_calibration.h).
  std::map<model::JobId, StartQuantiles> starts;
};

// The inputs of a prediction. All of it must outlive it.
struct PredictionInputs {
  Books& books;  // the waiting and running jobs are given below
  const model::Policy& policy;
  const CycleOptions& options;  // of the cycle
  const std::vector<RunningJob>& running;
  const std::vector<WaitingJob>& waiting;  // in order; no other jobs count
};

// Predicts the starts of the waiting jobs. It leaves out jobs that a quota keeps back, and jobs for
// which no end of other jobs makes room. A place is sought for a job's whole time limit, as the
// cycle does, and then held for the predicted time. Leaves the books as they were.
//
// Cost: twice a cycle in which all of these get planned starts, and a prediction for each of them
// and for each running job.
PredictedStarts predict_starts(const PredictionInputs& inputs);

// The same with time limits instead of predicted run times: the planned starts of the waiting jobs.
// Cost: half of it.
std::map<model::JobId, base::Instant> plan_starts(const PredictionInputs& inputs);

}  // namespace gpu_platform::scheduling
