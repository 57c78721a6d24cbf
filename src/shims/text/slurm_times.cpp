#include "shims/text/slurm_times.h"

#include <algorithm>
#include <ctime>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <pwd.h>

#include "api/convert/job.h"
#include "base/parse.h"
#include "cli/text/local_clock.h"
#include "cli/words/time_expression.h"
#include "shims/text/slurm_values.h"

namespace gpu_platform::shims {

using cli::instant_of;
using cli::local_parts;

namespace {

base::Instant last_midnight(base::Instant now) {
  std::tm parts = local_parts(now);
  parts.tm_hour = parts.tm_min = parts.tm_sec = 0;
  return instant_of(parts).value_or(now);
}

constexpr std::int64_t kDay = 86'400;

bool is_digit_at(std::string_view text, std::size_t at) {
  return at < text.size() && text[at] >= '0' && text[at] <= '9';
}

// Takes the word away that the text begins with, in upper or lower case.
bool take_word(std::string_view& text, std::string_view word) {
  if (lower_case(text.substr(0, word.size())) != word) return false;
  text.remove_prefix(word.size());
  return true;
}

// Takes a number of at most `digits` digits away.
std::optional<int> take_number(std::string_view& text, std::size_t digits) {
  int number = 0;
  std::size_t count = 0;
  for (; count < digits && is_digit_at(text, count); ++count)
    number = number * 10 + (text[count] - '0');
  if (count == 0) return std::nullopt;
  text.remove_prefix(count);
  return number;
}

void skip_blanks(std::string_view& text) {
  while (text.starts_with(' ') || text.starts_with('\t')) text.remove_prefix(1);
}

// What has been read of a time so far.
class TimeReader {
 public:
  TimeReader(base::Instant now, Sought sought)
      : now_(now), sought_(sought), parts_(local_parts(now)) {}

  std::optional<base::Instant> read(std::string_view text);

 private:
  bool take_part(std::string_view& text);
  bool take_named(std::string_view& text);
  bool take_now(std::string_view& text);
  bool take_clock(std::string_view& text);
  bool take_date(std::string_view& text);
  bool take_long_date(std::string_view& text);
  void set_day(base::Instant at);
  void set_clock(int hour, int minute, int second);
  void complete();
  std::optional<base::Instant> result() const;

  base::Instant now_;
  Sought sought_;
  std::tm parts_;
  bool has_clock_ = false;
  bool has_day_ = false;
  bool has_year_ = false;
};

void TimeReader::set_day(base::Instant at) {
  const std::tm day = local_parts(at);
  parts_.tm_year = day.tm_year;
  parts_.tm_mon = day.tm_mon;
  parts_.tm_mday = day.tm_mday;
  has_day_ = has_year_ = true;
}

void TimeReader::set_clock(int hour, int minute, int second) {
  parts_.tm_hour = hour;
  parts_.tm_min = minute;
  parts_.tm_sec = second;
  has_clock_ = true;
}

bool TimeReader::take_named(std::string_view& text) {
  if (take_word(text, "today")) {
    set_day(now_);
    return true;
  }
  if (take_word(text, "tomorrow")) {
    set_day(now_ + base::seconds(kDay));
    return true;
  }
  constexpr std::pair<std::string_view, int> kNames[] = {
      {"midnight", 0}, {"noon", 12}, {"elevenses", 11}, {"fika", 15}, {"teatime", 16}};
  for (const auto& [name, hour] : kNames) {
    if (!take_word(text, name)) continue;
    set_clock(hour, 0, 0);
    return true;
  }
  return false;
}

// "now", "now+60", "now - 2 days": seconds, minutes, hours, days or weeks.
bool TimeReader::take_now(std::string_view& text) {
  if (!take_word(text, "now")) return false;
  skip_blanks(text);
  std::int64_t seconds = 0;
  if (text.starts_with('+') || text.starts_with('-')) {
    const std::int64_t sign = text.front() == '+' ? 1 : -1;
    text.remove_prefix(1);
    skip_blanks(text);
    const auto count = take_number(text, 9);
    if (!count) return false;
    skip_blanks(text);
    constexpr std::pair<std::string_view, std::int64_t> kUnits[] = {
        {"seconds", 1}, {"second", 1},  {"minutes", 60}, {"minute", 60},      {"hours", 3600},
        {"hour", 3600}, {"days", kDay}, {"day", kDay},   {"weeks", 7 * kDay}, {"week", 7 * kDay}};
    std::int64_t unit = 1;
    for (const auto& [name, length] : kUnits) {
      if (!take_word(text, name)) continue;
      unit = length;
      break;
    }
    seconds = sign * *count * unit;
  }
  constexpr std::int64_t kFarthest = 100 * 365 * kDay;
  if (seconds > kFarthest) return false;
  const std::int64_t at = std::max<std::int64_t>(1, now_.unix_ns() / 1'000'000'000 + seconds);
  const base::Instant then(at * 1'000'000'000 + now_.unix_ns() % 1'000'000'000);
  set_day(then);
  const std::tm clock = local_parts(then);
  set_clock(clock.tm_hour, clock.tm_min, clock.tm_sec);
  return true;
}

// "16:00", "4:00:30 PM"
bool TimeReader::take_clock(std::string_view& text) {
  auto hour = take_number(text, 2);
  const auto two_digits = [&]() -> std::optional<int> {
    if (!text.starts_with(':') || !is_digit_at(text, 1) || !is_digit_at(text, 2))
      return std::nullopt;
    text.remove_prefix(1);
    return take_number(text, 2);
  };
  const auto minute = two_digits();
  const auto second = text.starts_with(':') ? two_digits() : std::optional(0);
  if (!hour || *hour > 23 || !minute || *minute > 59 || !second || *second > 59) return false;
  skip_blanks(text);
  if (take_word(text, "pm")) {
    if (*hour > 12) return false;
    hour = *hour % 12 + 12;
  } else if (take_word(text, "am")) {
    if (*hour > 12) return false;
    hour = *hour % 12;
  }
  set_clock(*hour, *minute, *second);
  return true;
}

// "2026-01-31"
bool TimeReader::take_long_date(std::string_view& text) {
  const auto year = take_number(text, 4);
  if (!text.starts_with('-')) return false;
  text.remove_prefix(1);
  const auto month = take_number(text, 2);
  if (!text.starts_with('-')) return false;
  text.remove_prefix(1);
  const auto day = take_number(text, 2);
  if (!year || !month || *month < 1 || *month > 12 || !day || *day < 1 || *day > 31) return false;
  parts_.tm_year = *year - 1900;
  parts_.tm_mon = *month - 1;
  parts_.tm_mday = *day;
  has_day_ = has_year_ = true;
  return true;
}

// "0131", "013126", "1/31", "01.31.26"
bool TimeReader::take_date(std::string_view& text) {
  if (text.size() > 7 && text[4] == '-' && text[7] == '-') return take_long_date(text);
  const auto skip_mark = [&] {
    if (text.starts_with('/') || text.starts_with('.')) text.remove_prefix(1);
  };
  const auto month = take_number(text, 2);
  skip_mark();
  const auto day = take_number(text, 2);
  if (!month || *month < 1 || *month > 12 || !day || *day < 1 || *day > 31) return false;
  skip_mark();
  parts_.tm_mon = *month - 1;
  parts_.tm_mday = *day;
  has_day_ = true;
  if (!is_digit_at(text, 0)) return true;
  if (!is_digit_at(text, 1)) return false;
  parts_.tm_year = 100 + *take_number(text, 2);
  has_year_ = true;
  return true;
}

bool TimeReader::take_part(std::string_view& text) {
  if (take_named(text)) return true;
  if (lower_case(text.substr(0, 3)) == "now") return take_now(text);
  if (text.starts_with('-') || text.starts_with('T')) {
    text.remove_prefix(1);
    return true;
  }
  if (!is_digit_at(text, 0)) return false;
  const std::size_t colon = text.find(':');
  const bool is_clock = colon == 1 || colon == 2;
  return is_clock ? take_clock(text) : take_date(text);
}

// Fills in what was left out.
void TimeReader::complete() {
  const std::tm now = local_parts(now_);
  if (!has_clock_) set_clock(0, 0, 0);
  const auto is_later = [](const auto& a, const auto& b) { return a > b; };
  const auto day_of = [](const std::tm& t) {
    return std::tuple(t.tm_mon, t.tm_mday, t.tm_hour, t.tm_min);
  };
  if (!has_day_) {
    const bool is_today =
        sought_ == Sought::kPast ||
        is_later(std::pair(parts_.tm_hour, parts_.tm_min), std::pair(now.tm_hour, now.tm_min));
    set_day(is_today ? now_ : now_ + base::seconds(kDay));
  }
  if (has_year_) return;
  parts_.tm_year = now.tm_year;
  if (sought_ == Sought::kPast && parts_.tm_mon > now.tm_mon) --parts_.tm_year;
  if (sought_ == Sought::kFuture && !is_later(day_of(parts_), day_of(now))) ++parts_.tm_year;
}

std::optional<base::Instant> TimeReader::result() const {
  constexpr int kYearOf1970 = 70;
  if (parts_.tm_year < kYearOf1970) return base::Instant(1'000'000'000);
  std::tm parts = parts_;
  parts.tm_isdst = -1;
  const auto at = instant_of(parts);
  // Midnight in the east of Greenwich is before the first second.
  if (!at && parts_.tm_year == kYearOf1970) return base::Instant(1'000'000'000);
  return at;
}

std::optional<base::Instant> TimeReader::read(std::string_view text) {
  bool has_any = false;
  for (skip_blanks(text); !text.empty(); skip_blanks(text)) {
    if (!take_part(text)) return std::nullopt;
    has_any = true;
  }
  if (!has_any || (!has_clock_ && !has_day_)) return std::nullopt;
  complete();
  return result();
}

// "uts1800000000"
std::optional<base::Instant> unix_time(std::string_view text) {
  if (!take_word(text, "uts")) return std::nullopt;
  const auto seconds = base::parse_count(text, 1'000'000, INT64_MAX / 1'000'000'000);
  if (!seconds) return std::nullopt;
  return base::Instant(static_cast<std::int64_t>(*seconds) * 1'000'000'000);
}

std::optional<base::Instant> time_of(std::string_view text, base::Instant now, Sought sought) {
  if (const auto at = unix_time(text)) return at;
  if (lower_case(text) == "now") return now;
  return TimeReader(now, sought).read(text);
}

// Writes a time by days of the calendar; a date of another year has no clock time.
std::string relative_form(const std::tm& parts, base::Instant at, base::Instant now) {
  if (parts.tm_year != local_parts(now).tm_year) return "%-d %b %Y";
  constexpr std::int64_t kLength = kDay * 1'000'000'000;
  const std::int64_t shifted =
      last_midnight(at).unix_ns() - last_midnight(now).unix_ns() + kLength / 2;
  const std::int64_t days =
      shifted >= 0 ? shifted / kLength : -((-shifted + kLength - 1) / kLength);
  if (days == 0) return "%H:%M:%S";
  if (days == 1) return "Tomorr %H:%M";
  if (days == -1) return "Ystday %H:%M";
  return days > 1 && days < 7 ? "%a %H:%M" : "%-d %b %H:%M";
}

}  // namespace

base::Result<base::Instant> parse_time_expression(std::string_view option, std::string_view text,
                                                  base::Instant now, Sought sought) {
  if (const auto at = time_of(text, now, sought)) return *at;
  return base::invalid(
      std::string(option),
      fmt::format("'{}' is not a time: write YYYY-MM-DD[THH:MM[:SS]], MM/DD[/YY][-HH:MM[:SS]], "
                  "MMDD[YY], HH:MM[:SS] [AM|PM], now[+|-COUNT[minutes|hours|days|weeks]], today, "
                  "tomorrow, midnight, noon, fika or teatime",
                  text));
}

base::Status put_coming_time(std::string_view option, std::string_view text, base::Instant now,
                             google::protobuf::Timestamp& time) {
  auto at = parse_time_expression(option, text, now, Sought::kFuture);
  if (!at) {
    const auto own = cli::parse_future_time(text, now);
    if (!own) return std::unexpected(at.error());
    at = *own;
  }
  api::to_proto(*at, time);
  return {};
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
