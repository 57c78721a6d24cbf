#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/units.h"
#include "cli/words/arguments.h"

namespace gpu_platform::cli {

// Where most windows of money begin by default.
inline constexpr std::string_view kMonthOfEnd = "the begin of the month in which it ends";

// The window of a report on the command line: two times, or a calendar month in UTC.
struct ReportWindow {
  std::optional<std::string> since, until, month;

  // `begin`: the default of --since, in words.
  void add_to(Arguments& arguments, std::string_view begin);
  // Puts it into a query as `since` and `until`. Errors name the option.
  base::Status put(base::Instant now, std::string& query) const;
};

}  // namespace gpu_platform::cli
