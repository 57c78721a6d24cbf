#pragma once

#include <string>

#include <google/protobuf/repeated_field.h>

#include "base/units.h"
#include "gpu_platform/v1/jobs.pb.h"
#include "gpu_platform/v1/predictions.pb.h"

// What is predicted of starts and runs, as text for people. Empty where nothing is.

namespace gpu_platform::cli {

// Returns the text of a PredictedStart: "2026-07-01 14:05:12 +0000 (in 5m12s to 9m), history
// p50–p90 of 12 runs".
std::string predicted_start_text(const v1::PredictedStart& predicted, base::Instant now);
// "5m12s to 9m".
std::string predicted_within(const v1::PredictedStart& predicted, base::Instant now);

// Returns the text of a PredictedRun, or nothing for null: "5m to 9m, history p50–p90 of 12 runs of
// this name", or "2h to 3h, expected time, by how far 12 runs of this command kept to theirs".
std::string predicted_run_text(const v1::PredictedRun* predicted);

// Returns the text of a PlannedTrust beside its planned start: "by 2026-07-01 16:30:00 +0000 (in
// 4h30m); 183 of the last 212 starts as deep in the queue were no later than planned".
std::string trust_text(const v1::PlannedTrust& trust, base::Instant planned, base::Instant now);

using ScoreList = google::protobuf::RepeatedPtrField<v1::PredictionScore>;

// Returns the text of a list of scores: "history: median error 4m00s, nine in ten within 31m00s,
// 96 % by then (212 starts); …".
std::string scores_text(const ScoreList& scores);

// Returns what was predicted for a started job, and when.
std::string start_prediction_text(const v1::Job& job);

}  // namespace gpu_platform::cli
