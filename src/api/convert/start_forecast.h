#pragma once

#include "gpu_platform/v1/estimates.pb.h"
#include "model/start_forecast.h"

namespace gpu_platform::api {

// Fills the cleared message; total.
void to_proto(const model::StartForecast& forecast, v1::StartForecast& out);

}  // namespace gpu_platform::api
