#include "cli/words/report_window.h"

#include <tuple>

#include <fmt/format.h>

#include "base/month.h"
#include "base/utc.h"
#include "cli/words/input.h"
#include "http/http.h"

namespace gpu_platform::cli {

void ReportWindow::add_to(Arguments& arguments, std::string_view begin) {
  arguments
      .option("--since", since, "TIME",
              fmt::format("begin: 7d, monday, a time (default: {})", begin))
      .option("--until", until, "TIME", "end (default: now)")
      .option("--month", month, "MONTH", "a calendar month in UTC: 2026-10");
}

base::Status ReportWindow::put(base::Instant now, std::string& query) const {
  if (month) {
    if (since || until) {
      return base::invalid("--month", "cannot be given with --since or --until");
    }
    const auto parsed = base::parse_month(*month);
    if (!parsed) {
      return base::invalid("--month", fmt::format("'{}' is no month, as 2026-10 is", *month));
    }
    if (base::begin_of(*parsed) > now) {
      return base::invalid("--month", fmt::format("{} lies in the future", *month));
    }
    http::append_query(query, "since", base::utc(base::begin_of(*parsed)));
    http::append_query(query, "until", base::utc(base::end_of(*parsed)));
    return {};
  }
  for (const auto& [option, value, field] :
       {std::tuple{"--since", &since, "since"}, std::tuple{"--until", &until, "until"}}) {
    if (!*value) continue;
    TRY_ASSIGN(const std::string time, past_time(option, **value, now));
    http::append_query(query, field, time);
  }
  return {};
}

}  // namespace gpu_platform::cli
