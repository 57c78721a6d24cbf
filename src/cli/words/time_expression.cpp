#include "cli/words/time_expression.h"

#include <array>
#include <chrono>
#include <ctime>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/parse.h"
#include "base/utc.h"
#include "cli/text/local_clock.h"

namespace gpu_platform::cli {

namespace {

constexpr std::uint64_t kMaxCount = 1'000'000'000;
constexpr std::int64_t kDay = 86'400;

// Behind "now+": a duration of ours, or a number of Slurm's seconds, minutes, hours, days, weeks.
std::optional<base::Duration> span_of(std::string_view text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto count = base::parse_count(text.substr(0, digits), 0, kMaxCount);
  std::string_view unit = text.substr(digits);
  if (unit.size() > 2 && unit.ends_with('s')) unit.remove_suffix(1);
  constexpr std::pair<std::string_view, std::int64_t> kUnits[] = {
      {"", 1}, {"second", 1}, {"minute", 60}, {"hour", 3600}, {"day", kDay}, {"week", 7 * kDay}};
  for (const auto& [name, seconds] : kUnits) {
    if (!count || unit != name) continue;
    const std::int64_t span = static_cast<std::int64_t>(*count) * seconds;
    if (span > 100 * 365 * kDay) return std::nullopt;
    return base::seconds(span);
  }
  const auto duration = base::parse_duration(text);
  if (!duration || *duration > base::hours(100 * 365 * 24)) return std::nullopt;
  return *duration;
}

// The clock time today, or tomorrow where that has passed.
std::optional<base::Instant> next_clock_time(std::tm parts, base::Instant now) {
  const auto today = instant_of(parts);
  if (today && *today >= now) return today;
  ++parts.tm_mday;
  return instant_of(parts);
}

std::optional<base::Instant> named(std::string_view text, base::Instant now) {
  std::tm parts = local_parts(now);
  parts.tm_hour = parts.tm_min = parts.tm_sec = 0;
  if (text == "now") return now;
  if (text == "today") return instant_of(parts);
  if (text == "tomorrow" || text == "midnight") {
    ++parts.tm_mday;
    return instant_of(parts);
  }
  if (text != "noon") return std::nullopt;
  parts.tm_hour = 12;
  return next_clock_time(parts, now);
}

// "16:00", today.
std::optional<std::tm> clock_time(const std::string& text, base::Instant now) {
  for (const char* form : {"%H:%M:%S", "%H:%M"}) {
    std::tm parts = local_parts(now);
    parts.tm_sec = 0;
    const char* end = ::strptime(text.c_str(), form, &parts);
    if (end != nullptr && *end == '\0') return parts;
  }
  return std::nullopt;
}

// strptime() knows no lengths of months: it reads the 30th of February.
bool is_a_day(const std::tm& parts) {
  return std::chrono::year_month_day(std::chrono::year(parts.tm_year + 1900),
                                     std::chrono::month(static_cast<unsigned>(parts.tm_mon + 1)),
                                     std::chrono::day(static_cast<unsigned>(parts.tm_mday)))
      .ok();
}

std::optional<base::Instant> date(const std::string& text) {
  for (const char* form : {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d"}) {
    std::tm parts{};
    const char* end = ::strptime(text.c_str(), form, &parts);
    if (end != nullptr && *end == '\0') return is_a_day(parts) ? instant_of(parts) : std::nullopt;
  }
  return std::nullopt;
}

std::optional<base::Instant> written_out(const std::string& text, base::Instant now) {
  if (const auto parts = clock_time(text, now)) return next_clock_time(*parts, now);
  return date(text);
}

// The last day of that name, or a day near this one.
std::optional<base::Instant> past_day(std::string_view text, base::Instant now) {
  constexpr std::array<std::string_view, 7> kDays = {"sunday",   "monday", "tuesday", "wednesday",
                                                     "thursday", "friday", "saturday"};
  std::tm parts = local_parts(now);
  parts.tm_hour = parts.tm_min = parts.tm_sec = 0;
  if (text == "now") return now;
  if (text == "today") return instant_of(parts);
  if (text == "yesterday") {
    --parts.tm_mday;
    return instant_of(parts);
  }
  for (int day = 0; day < 7; ++day) {
    if (text != kDays[static_cast<std::size_t>(day)]) continue;
    parts.tm_mday -= (parts.tm_wday - day + 7) % 7;
    return instant_of(parts);
  }
  return std::nullopt;
}

std::optional<base::Instant> past_time_of(std::string text, base::Instant now) {
  if (const auto at = base::parse_rfc3339(text)) return at;
  if (const auto at = past_day(text, now)) return at;
  if (auto parts = clock_time(text, now)) {
    const auto today = instant_of(*parts);
    if (today && *today <= now) return today;
    --parts->tm_mday;
    return instant_of(*parts);
  }
  // "2026-01-31 12:00", as lists print it.
  if (text.size() > 10 && text[10] == ' ') text[10] = 'T';
  return date(text);
}

std::optional<base::Instant> future_time_of(std::string_view text, base::Instant now) {
  if (const auto at = base::parse_rfc3339(text)) return at;
  if (text.starts_with("now+")) {
    const auto span = span_of(text.substr(4));
    return span ? std::optional(now + *span) : std::nullopt;
  }
  if (const auto at = named(text, now)) return at;
  return written_out(std::string(text), now);
}

}  // namespace

base::Result<base::Instant> parse_future_time(std::string_view text, base::Instant now) {
  if (const auto at = future_time_of(text, now)) return *at;
  return base::invalid(
      {},
      fmt::format("'{}' is not a time: write now+2h, 16:00, 2026-01-31, 2026-01-31T12:00, or with "
                  "a zone 2026-01-31T12:00:00Z",
                  text));
}

base::Result<base::Instant> parse_past_time(std::string_view text, base::Instant now) {
  if (const auto at = past_time_of(std::string(text), now)) return *at;
  return base::invalid({}, fmt::format("'{}' is neither a duration (2h, 7d) nor a time: write "
                                       "yesterday, monday, 16:00, 2026-01-31, 2026-01-31T12:00, "
                                       "or with a zone 2026-01-31T12:00:00Z",
                                       text));
}

}  // namespace gpu_platform::cli
