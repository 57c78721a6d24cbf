#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <google/protobuf/timestamp.pb.h>

#include "base/result.h"
#include "base/units.h"

namespace gpu_platform::shims {

// Which time an incomplete one stands for: the clock time of today and the latest such day, or the
// next such time.
enum class Sought : std::uint8_t { kPast, kFuture };

// A time as Slurm's options write it, in the local time zone: a date (YYYY-MM-DD, MMDD[YY],
// MM/DD[/YY], MM.DD[.YY]), a clock time (HH:MM[:SS] [AM|PM]) or both, in any order with 'T', '-' or
// blanks between them; today, tomorrow, midnight, noon, elevenses, fika and teatime in place of
// either; now, now+COUNT[UNIT], now-COUNT[UNIT]; utsSECONDS. Case is ignored. Days
// before 1970 are its first second. `option` is named in the error.
base::Result<base::Instant> parse_time_expression(std::string_view option, std::string_view text,
                                                  base::Instant now, Sought sought = Sought::kPast);

// Puts a time in the future, of an option or of KEY=VALUE, into a request. Besides Slurm's forms
// those of the platform's own commands are read ("now+2h", "2026-01-31T12:00:00Z").
base::Status put_coming_time(std::string_view option, std::string_view text, base::Instant now,
                             google::protobuf::Timestamp& time);

// "Sun Nov 22 21:22:16 2026" in the local time zone, with its end of line: the first line of long
// tables.
std::string date_line(base::Instant at);

// The time in one of the forms of SLURM_TIME_FORMAT: "standard" (also empty), "relative", which is
// short for days near `now`, or a form of strftime.
std::string time_in_form(base::Instant at, base::Instant now, const std::string& form);

// "1000": the number of a user's name, or the name where the system does not know it.
std::string user_number(const std::string& name);

}  // namespace gpu_platform::shims
