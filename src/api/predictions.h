#pragma once

#include "gpu_platform/v1/predictions.pb.h"
#include "views/explanation.h"

// Predictions of starts and runs, and their errors, as messages.

namespace gpu_platform::api {

using Scores = google::protobuf::RepeatedPtrField<v1::PredictionScore>;

// Fill the cleared message; total.
void to_proto(const views::PredictedStart& predicted, v1::PredictedStart& out);
void to_proto(const scheduling::PredictedRun& predicted, v1::PredictedRun& out);
void to_proto(const scheduling::PlannedTrust& trust, v1::PlannedTrust& out);

// One for each basis of which there are any.
void add_scores(const controller::Snapshot& snapshot, Scores& out);

}  // namespace gpu_platform::api
