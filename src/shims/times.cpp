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

// Clock times that have names.
std::optional<base::Instant> named_time(base::Instant now, std::string_view name) {
  constexpr std::pair<std::string_view, int> kNames[] = {{"midnight", 0},   {"today", 0},
                                                         {"elevenses", 11}, {"noon", 12},
                                                         {"fika", 15},      {"teatime", 16}};
  std::tm parts = local_parts(last_midnight(now));
  for (const auto& [known, hour] : kNames) {
    if (known != name) continue;
    parts.tm_hour = hour;
    return instant_of(parts);
  }
  if (name != "tomorrow") return std::nullopt;
  ++parts.tm_mday;
  return instant_of(parts);
}

// A form of strptime; forms of a clock time alone are about today.
std::optional<base::Instant> of_form(const std::string& text, const char* form, base::Instant now) {
  std::tm parts = local_parts(now);
  const std::string_view letters(form);
  const bool has_date = letters.find("%d") != std::string_view::npos;
  parts.tm_sec = 0;
  if (has_date) parts.tm_hour = parts.tm_min = 0;
  const char* end = ::strptime(text.c_str(), form, &parts);
  if (end == nullptr || *end != '\0') return std::nullopt;
  return instant_of(parts);
}

std::optional<base::Instant> written_out(const std::string& text, base::Instant now) {
  for (const char* form :
       {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d", "%I:%M:%S%p", "%I:%M%p", "%I:%M %p",
        "%H:%M:%S", "%H:%M", "%m/%d/%y-%H:%M:%S", "%m/%d/%y-%H:%M", "%m/%d-%H:%M:%S", "%m/%d-%H:%M",
        "%m/%d/%y", "%m/%d", "%m.%d.%y", "%m.%d"}) {
    if (const auto at = of_form(text, form, now)) return at;
  }
  const bool has_digits = text.find_first_not_of("0123456789") == std::string::npos;
  if (has_digits && text.size() == 6) return of_form(text, "%m%d%y", now);
  if (has_digits && text.size() == 4) return of_form(text, "%m%d", now);
  return std::nullopt;
}

std::optional<base::Instant> after(base::Instant now, std::string_view text) {
  const auto back = back_from(now, text);
  return back ? std::optional(now + (now - *back)) : std::nullopt;
}

// Writes a time by days of the calendar; a date of another year has no clock time.
std::string relative_form(const std::tm& parts, base::Instant at, base::Instant now) {
  if (parts.tm_year != local_parts(now).tm_year) return "%-d %b %Y";
  constexpr std::int64_t kDay = 86'400'000'000'000;
  const std::int64_t shifted =
      last_midnight(at).unix_ns() - last_midnight(now).unix_ns() + kDay / 2;
  const std::int64_t days = shifted >= 0 ? shifted / kDay : -((-shifted + kDay - 1) / kDay);
  if (days == 0) return "%H:%M:%S";
  if (days == 1) return "Tomorr %H:%M";
  if (days == -1) return "Ystday %H:%M";
  return days > 1 && days < 7 ? "%a %H:%M" : "%-d %b %H:%M";
}

}  // namespace

base::Result<base::Instant> parse_time_expression(std::string_view option, std::string_view text,
                                                  base::Instant now) {
  if (text == "now") return now;
  if (const auto named = named_time(now, text)) return *named;
  const auto at = text.starts_with("now-")   ? back_from(now, text.substr(4))
                  : text.starts_with("now+") ? after(now, text.substr(4))
                                             : written_out(std::string(text), now);
  if (at) return *at;
  return base::invalid(
      std::string(option),
      fmt::format(
          "'{}' is not a time: write YYYY-MM-DD, YYYY-MM-DDTHH:MM[:SS], MM/DD[/YY][-HH:MM], "
          "MMDD[YY], HH:MM[:SS][AM|PM], now, now-2days, today, midnight or noon",
          text));
}

std::string time_in_form(base::Instant at, base::Instant now, const std::string& form) {
  const std::tm parts = local_parts(at);
  const std::string used = form == "relative"                   ? relative_form(parts, at, now)
                           : form.empty() || form == "standard" ? "%Y-%m-%dT%H:%M:%S"
                                                                : form;
  char text[256];
  return {text, std::strftime(text, sizeof text, used.c_str(), &parts)};
}

std::string date_line(base::Instant at) {
  const std::tm parts = local_parts(at);
  char text[64];
  return {text, std::strftime(text, sizeof text, "%a %b %e %H:%M:%S %Y\n", &parts)};
}

std::string user_number(const std::string& name) {
  const passwd* entry = ::getpwnam(name.c_str());
  return entry == nullptr ? name : fmt::format("{}", entry->pw_uid);
}

}  // namespace gpu_platform::shims
