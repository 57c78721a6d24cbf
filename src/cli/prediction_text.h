#pragma once

#include <string>

#include "base/units.h"
#include "cli/json_view.h"

// What is predicted of starts and runs, as text for people. Empty where nothing is.

namespace gpu_platform::cli {

// Returns the text of a PredictedStart: "2026-07-01 14:05:12 +0000 (in 5m12s to 9m), history
// p50–p90 of 12 runs".
std::string predicted_start_text(const Json& predicted, base::Instant now);
// "5m12s to 9m".
std::string predicted_within(const Json& predicted, base::Instant now);

// Returns the text of a PredictedRun: "5m to 9m, history p50–p90 of 12 runs of this name", or "2h
// to 3h, expected time, to which 12 runs of this user kept so far".
std::string predicted_run_text(const Json& predicted);

// Returns the text of a PlannedTrust beside its planned start: "by 2026-07-01 16:30:00 +0000 (in
// 4h30m); 183 of the last 212 starts as deep in the queue were no later than planned".
std::string trust_text(const Json& trust, base::Instant planned, base::Instant now);

// Returns the text of a list of PredictionScore: "history off by 4m (p50), 31m (p90) over 212
// starts, 96 % by then; …".
std::string scores_text(const Json& scores);

// Of a job's forecast, once it has started: what was predicted and when.
std::string start_prediction_text(const Json& job);

}  // namespace gpu_platform::cli
