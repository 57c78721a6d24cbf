#include "model/start_prediction.h"

#include <utility>

#include "base/check.h"

namespace gpu_platform::model {

std::string_view to_string(PredictionBasis basis) {
  switch (basis) {
    case PredictionBasis::kHardLimits:
      return "hard_limits";
    case PredictionBasis::kExpectedTime:
      return "expected_time";
    case PredictionBasis::kHistory:
      return "history";
  }
  CHECK(false);
  std::unreachable();
}

}  // namespace gpu_platform::model
