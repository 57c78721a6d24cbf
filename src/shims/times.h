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

// "Sun Nov 22 21:22:16 2026" in the local time zone, with its end of line: the first line of long
// tables.
std::string date_line(base::Instant at);

// The time in one of the forms of SLURM_TIME_FORMAT: "standard" (also empty), "relative", which is
// short for days near `now`, or a form of strftime.
std::string time_in_form(base::Instant at, base::Instant now, const std::string& form);

// "1000": the number of a user's name, or the name where the system does not know it.
std::string user_number(const std::string& name);

}  // namespace gpu_platform::shims
