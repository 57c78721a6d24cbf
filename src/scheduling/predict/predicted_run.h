#pragma once

#include <optional>

#include "base/units.h"
#include "model/job.h"
#include "model/start_prediction.h"
#include "scheduling/predict/run_history.h"

namespace gpu_platform::scheduling {

// What is expected of one job's whole run, at full speed.
struct PredictedRun {
  base::Duration p50;
  base::Duration p90;  // p50 where its user said it
  model::PredictionBasis basis = model::PredictionBasis::kHistory;
  std::optional<RunPrediction> history;  // where it is the basis

  friend bool operator==(const PredictedRun&, const PredictedRun&) = default;
};

// Of one that has run for `elapsed` at full speed: what its user said, unless that is over; else
// what its like did; else nothing. Never more than its time limit.
std::optional<PredictedRun> predicted_run(const model::JobSpec& spec, base::Duration elapsed,
                                          const RunHistory& history);

}  // namespace gpu_platform::scheduling
