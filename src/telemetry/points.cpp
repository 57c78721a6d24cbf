#include "telemetry/points.h"

namespace gpu_platform::telemetry {

base::Duration step_of(Tier tier) {
  switch (tier) {
    case Tier::kRaw:
      break;
    case Tier::kMinute:
      return base::minutes(1);
    case Tier::kQuarterHour:
      return base::minutes(15);
  }
  return {};
}

}  // namespace gpu_platform::telemetry
