#pragma once

#include <string>

#include "base/units.h"

namespace gpu_platform::model {

// "2026-07-01T12:00:00Z", rounded down to the second.
std::string utc(base::Instant at);

}  // namespace gpu_platform::model
