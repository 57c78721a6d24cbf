#pragma once

#include "gpu_platform/v1/predictions.pb.h"
#include "model/start_prediction.h"

namespace gpu_platform::api {

// Fills the cleared message; total.
void to_proto(const model::StartPrediction& prediction, v1::StartPrediction& out);

}  // namespace gpu_platform::api
