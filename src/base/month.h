#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"

namespace gpu_platform::base {

// A calendar month in UTC, of the years 1970 to 2261.
struct Month {
  int year = 1970;
  unsigned month = 1;  // 1 to 12

  friend auto operator<=>(const Month&, const Month&) = default;
};

Month month_of(Instant at);
Instant begin_of(Month month);
// The begin of the next one.
Instant end_of(Month month);
// The month so many later; earlier if it is negative.
Month plus_months(Month month, int count);
std::string to_string(Month month);  // "2026-10"
// Reads "2026-10"; nothing if it is no such month.
std::optional<Month> parse_month(std::string_view text);

}  // namespace gpu_platform::base
