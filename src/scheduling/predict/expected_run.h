#pragma once

#include <optional>

#include "base/units.h"
#include "model/job.h"
#include "model/start_forecast.h"
#include "scheduling/predict/run_history.h"

namespace gpu_platform::scheduling {

// What is expected of one job's whole run, at full speed.
struct ExpectedRun {
  base::Duration p50;
  base::Duration p90;  // p50 where its user said it
  model::ForecastBasis basis = model::ForecastBasis::kHistory;
  std::optional<RunPrediction> history;  // where it is the basis

  friend bool operator==(const ExpectedRun&, const ExpectedRun&) = default;
};

// Of one that has run for `elapsed` at full speed: what its user said, unless that is over; else
// what its like did; else nothing. Never more than its time limit.
std::optional<ExpectedRun> expected_run(const model::JobSpec& spec, base::Duration elapsed,
                                        const RunHistory& history);

}  // namespace gpu_platform::scheduling
