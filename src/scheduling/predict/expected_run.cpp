#include "scheduling/predict/expected_run.h"

#include <algorithm>

namespace gpu_platform::scheduling {

using model::ForecastBasis;

std::optional<ExpectedRun> expected_run(const model::JobSpec& spec, base::Duration elapsed,
                                        const RunHistory& history) {
  const base::Duration limit = spec.time_limit;
  if (spec.expected_time && *spec.expected_time > elapsed) {
    const base::Duration expected = std::min(*spec.expected_time, limit);
    return ExpectedRun{expected, expected, ForecastBasis::kExpectedTime, {}};
  }
  auto prediction = history.predict(spec, elapsed);
  if (!prediction) return std::nullopt;
  return ExpectedRun{std::min(prediction->p50, limit), std::min(prediction->p90, limit),
                     ForecastBasis::kHistory, prediction};
}

}  // namespace gpu_platform::scheduling
