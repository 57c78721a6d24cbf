#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/units.h"

namespace gpu_platform::shims {

// A time as sacct's options write it: YYYY-MM-DD[THH:MM[:SS]] and HH:MM[:SS] of today in the local
// time zone, now, now-2days, today, midnight. `option` is named in the error.
base::Result<base::Instant> parse_time_expression(std::string_view option, std::string_view text,
                                                  base::Instant now);

// "1000": the number of a user's name, or the name where the system does not know it.
std::string user_number(const std::string& name);

}  // namespace gpu_platform::shims
