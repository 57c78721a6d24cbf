#include "base/utc.h"

#include <chrono>  // layers allow calendar: dates of days, no clock

namespace gpu_platform::base {

namespace {

constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;
constexpr std::int64_t kSecondsPerDay = 86'400;
// 2262-01-01: an Instant ends in April.
constexpr std::int64_t kEndOfInstants = 9'214'646'400;

void append_digits(char*& out, unsigned value, int digits) {
  for (int i = digits - 1; i >= 0; --i) {
    out[i] = static_cast<char>('0' + value % 10);
    value /= 10;
  }
  out += digits;
}

// Takes exactly `digits` decimal digits off the front of text.
std::optional<int> take_number(std::string_view& text, std::size_t digits) {
  if (text.size() < digits) return std::nullopt;
  int value = 0;
  for (std::size_t i = 0; i < digits; ++i) {
    if (text[i] < '0' || text[i] > '9') return std::nullopt;
    value = value * 10 + (text[i] - '0');
  }
  text.remove_prefix(digits);
  return value;
}

bool take(std::string_view& text, std::string_view any_of) {
  if (text.empty() || any_of.find(text.front()) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

// Seconds since 1970 of "YYYY-MM-DDThh:mm:ss", without a zone.
std::optional<std::int64_t> take_date_time(std::string_view& text) {
  const auto year = take_number(text, 4);
  if (!year || !take(text, "-")) return std::nullopt;
  const auto month = take_number(text, 2);
  if (!month || !take(text, "-")) return std::nullopt;
  const auto day = take_number(text, 2);
  if (!day || !take(text, "Tt ")) return std::nullopt;
  const auto hour = take_number(text, 2);
  if (!hour || *hour > 23 || !take(text, ":")) return std::nullopt;
  const auto minute = take_number(text, 2);
  if (!minute || *minute > 59 || !take(text, ":")) return std::nullopt;
  const auto second = take_number(text, 2);
  if (!second || *second > 59) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return std::nullopt;
  const std::int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  return ((days * 24 + *hour) * 60 + *minute) * 60 + *second;
}

// ".25" as nanoseconds; no fraction is zero.
std::optional<std::int64_t> take_fraction(std::string_view& text) {
  if (!take(text, ".")) return 0;
  std::int64_t nanoseconds = 0;
  std::int64_t unit = kNanosecondsPerSecond;
  std::size_t digits = 0;
  while (!text.empty() && text.front() >= '0' && text.front() <= '9') {
    if (++digits > 9) return std::nullopt;
    unit /= 10;
    nanoseconds += (text.front() - '0') * unit;
    text.remove_prefix(1);
  }
  if (digits == 0) return std::nullopt;
  return nanoseconds;
}

// "Z" or "+hh:mm" as seconds east of Greenwich.
std::optional<std::int64_t> take_zone(std::string_view& text) {
  if (take(text, "Zz")) return 0;
  if (text.empty()) return std::nullopt;
  const int sign = text.front() == '-' ? -1 : 1;
  if (!take(text, "+-")) return std::nullopt;
  const auto hours = take_number(text, 2);
  if (!hours || *hours > 23 || !take(text, ":")) return std::nullopt;
  const auto minutes = take_number(text, 2);
  if (!minutes || *minutes > 59) return std::nullopt;
  return sign * (*hours * 3600 + *minutes * 60);
}

}  // namespace

void append_rfc3339(std::string& out, Instant at, Fraction fraction) {
  constexpr std::int64_t kPerDay = kSecondsPerDay * kNanosecondsPerSecond;
  const std::int64_t since = at.unix_ns() % kPerDay;
  const std::int64_t of_day = since < 0 ? since + kPerDay : since;
  const std::chrono::sys_days day{std::chrono::days((at.unix_ns() - of_day) / kPerDay)};
  const std::chrono::year_month_day date{day};
  const auto second = static_cast<unsigned>(of_day / kNanosecondsPerSecond);
  char text[32];
  char* end = text;
  append_digits(end, static_cast<unsigned>(static_cast<int>(date.year())), 4);
  *end++ = '-';
  append_digits(end, static_cast<unsigned>(date.month()), 2);
  *end++ = '-';
  append_digits(end, static_cast<unsigned>(date.day()), 2);
  *end++ = 'T';
  append_digits(end, second / 3600, 2);
  *end++ = ':';
  append_digits(end, second / 60 % 60, 2);
  *end++ = ':';
  append_digits(end, second % 60, 2);
  if (fraction != Fraction::kNone) {
    *end++ = '.';
    append_digits(end, static_cast<unsigned>(of_day % kNanosecondsPerSecond), 9);
    end -= 9 - static_cast<int>(fraction);
  }
  *end++ = 'Z';
  out.append(text, static_cast<std::size_t>(end - text));
}

std::string utc(Instant at, Fraction fraction) {
  std::string text;
  append_rfc3339(text, at, fraction);
  return text;
}

std::optional<UnixTime> parse_unix_time(std::string_view text) {
  const auto seconds = take_date_time(text);
  if (!seconds) return std::nullopt;
  const auto fraction = take_fraction(text);
  if (!fraction) return std::nullopt;
  const auto zone = take_zone(text);
  if (!zone || !text.empty()) return std::nullopt;
  return UnixTime{*seconds - *zone, *fraction};
}

std::optional<Instant> parse_rfc3339(std::string_view text) {
  const auto time = parse_unix_time(text);
  if (!time || time->seconds < 0 || time->seconds >= kEndOfInstants) return std::nullopt;
  return Instant(time->seconds * kNanosecondsPerSecond + time->nanoseconds);
}

}  // namespace gpu_platform::base
