#include "shims/times.h"

#include <ctime>
#include <optional>

#include <fmt/format.h>
#include <pwd.h>

#include "base/parse.h"
#include "cli/local_clock.h"

namespace gpu_platform::shims {

using cli::instant_of;
using cli::local_parts;

namespace {

base::Instant last_midnight(base::Instant now) {
  std::tm parts = local_parts(now);
  parts.tm_hour = parts.tm_min = parts.tm_sec = 0;
  return instant_of(parts).value_or(now);
}

// "now-2days", "now-3hours", "now-90": seconds, minutes, hours, days or weeks.
std::optional<base::Instant> back_from(base::Instant now, std::string_view text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto count = base::parse_count(text.substr(0, digits), 0, 1'000'000);
  std::string_view unit = text.substr(digits);
  if (unit.ends_with('s') && unit.size() > 1) unit.remove_suffix(1);
  constexpr std::pair<std::string_view, std::int64_t> kUnits[] = {
      {"", 1}, {"second", 1}, {"minute", 60}, {"hour", 3600}, {"day", 86'400}, {"week", 604'800}};
  for (const auto& [name, seconds] : kUnits) {
    if (!count || name != unit) continue;
    const std::int64_t back = static_cast<std::int64_t>(*count) * seconds;
    return base::Instant(std::max<std::int64_t>(1, now.unix_ns() / 1'000'000'000 - back) *
                         1'000'000'000);
  }
  return std::nullopt;
}

std::optional<base::Instant> written_out(const std::string& text, base::Instant now) {
  for (const char* form :
       {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d", "%H:%M:%S", "%H:%M"}) {
    std::tm parts{};
    if (form[1] == 'H') {
      parts = local_parts(now);
      parts.tm_sec = 0;
    }
    const char* end = ::strptime(text.c_str(), form, &parts);
    if (end != nullptr && *end == '\0') return instant_of(parts);
  }
  return std::nullopt;
}

}  // namespace

base::Result<base::Instant> parse_time_expression(std::string_view option, std::string_view text,
                                                  base::Instant now) {
  if (text == "now") return now;
  if (text == "today" || text == "midnight") return last_midnight(now);
  const auto at = text.starts_with("now-") ? back_from(now, text.substr(4))
                                           : written_out(std::string(text), now);
  if (at) return *at;
  return base::invalid(
      std::string(option),
      fmt::format("'{}' is no time: write YYYY-MM-DD, YYYY-MM-DDTHH:MM[:SS], HH:MM[:SS], "
                  "now, now-2days, today or midnight",
                  text));
}

std::string user_number(const std::string& name) {
  const passwd* entry = ::getpwnam(name.c_str());
  return entry == nullptr ? name : fmt::format("{}", entry->pw_uid);
}

}  // namespace gpu_platform::shims
