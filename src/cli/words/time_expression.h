#pragma once

#include <string_view>

#include "base/result.h"
#include "base/units.h"

namespace gpu_platform::cli {

// A time in the future, as users write it: "2026-01-31T12:00:00Z" (RFC 3339), "2026-01-31",
// "2026-01-31T12:00[:30]" and "16:00[:30]" in the local time zone, of a clock time the next one;
// "now", "now+2h", "now+90" (seconds, as in Slurm), "now+3hours"; "midnight", "noon", "today",
// "tomorrow". Errors carry no field.
base::Result<base::Instant> parse_future_time(std::string_view text, base::Instant now);

// A time that is past: RFC 3339, "2026-01-31", "2026-01-31T12:00[:30]", also with a space, and
// "16:00[:30]" in the local time zone, of a clock time the last one; "now", "today", "yesterday"
// and "monday" to "sunday" begin at midnight. Errors carry no field.
base::Result<base::Instant> parse_past_time(std::string_view text, base::Instant now);

}  // namespace gpu_platform::cli
