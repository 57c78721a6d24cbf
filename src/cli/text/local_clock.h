#pragma once

#include <ctime>
#include <optional>

#include "base/units.h"

namespace gpu_platform::cli {

// The calendar and clock of the local time zone at that instant.
std::tm local_parts(base::Instant at);

// The instant of local calendar and clock; fields beyond their range carry over. Nothing before
// 1970 or beyond what an Instant holds.
std::optional<base::Instant> instant_of(std::tm parts);

}  // namespace gpu_platform::cli
