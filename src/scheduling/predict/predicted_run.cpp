#include "scheduling/predict/predicted_run.h"

#include <algorithm>

namespace gpu_platform::scheduling {

using model::PredictionBasis;

std::optional<PredictedRun> predicted_run(const model::JobSpec& spec, base::Duration elapsed,
                                          const RunHistory& history) {
  const base::Duration limit = spec.time_limit;
  if (spec.expected_time && *spec.expected_time > elapsed) {
    const base::Duration predicted = std::min(*spec.expected_time, limit);
    return PredictedRun{predicted, predicted, PredictionBasis::kExpectedTime, {}};
  }
  auto prediction = history.predict(spec, elapsed);
  if (!prediction) return std::nullopt;
  return PredictedRun{std::min(prediction->p50, limit), std::min(prediction->p90, limit),
                      PredictionBasis::kHistory, prediction};
}

}  // namespace gpu_platform::scheduling
