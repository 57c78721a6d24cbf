#include "model/start_forecast.h"

#include <utility>

#include "base/check.h"

namespace gpu_platform::model {

std::string_view to_string(ForecastBasis basis) {
  switch (basis) {
    case ForecastBasis::kHardLimits:
      return "hard_limits";
    case ForecastBasis::kExpectedTime:
      return "expected_time";
    case ForecastBasis::kHistory:
      return "history";
  }
  CHECK(false);
  std::unreachable();
}

}  // namespace gpu_platform::model
