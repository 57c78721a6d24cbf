#include "base/month.h"

#include <chrono>  // layers allow calendar: dates of months, no clock

#include <fmt/format.h>

namespace gpu_platform::base {

namespace {

constexpr int kFirstYear = 1970;
constexpr int kLastYear = 2261;  // the last whole one that an Instant can say

}  // namespace

Month month_of(Instant at) {
  const std::chrono::sys_time<std::chrono::nanoseconds> instant(
      std::chrono::nanoseconds(at.unix_ns()));
  const std::chrono::year_month_day day(std::chrono::floor<std::chrono::days>(instant));
  return {static_cast<int>(day.year()), static_cast<unsigned>(day.month())};
}

Instant begin_of(Month month) {
  const std::chrono::sys_days day(std::chrono::year(month.year) / std::chrono::month(month.month) /
                                  std::chrono::day(1));
  return Instant(std::chrono::nanoseconds(day.time_since_epoch()).count());
}

Instant end_of(Month month) {
  return begin_of(plus_months(month, 1));
}

Month plus_months(Month month, int count) {
  const int months = month.year * 12 + static_cast<int>(month.month) - 1 + count;
  return {months / 12, static_cast<unsigned>(months % 12) + 1};
}

std::string to_string(Month month) {
  return fmt::format("{:04}-{:02}", month.year, month.month);
}

std::optional<Month> parse_month(std::string_view text) {
  if (text.size() != 7 || text[4] != '-') return std::nullopt;
  const auto number = [&](std::size_t at, std::size_t length) -> std::optional<int> {
    int value = 0;
    for (const char c : text.substr(at, length)) {
      if (c < '0' || c > '9') return std::nullopt;
      value = value * 10 + (c - '0');
    }
    return value;
  };
  const auto year = number(0, 4);
  const auto month = number(5, 2);
  if (!year || !month || *year < kFirstYear || *year > kLastYear) return std::nullopt;
  if (*month < 1 || *month > 12) return std::nullopt;
  return Month{*year, static_cast<unsigned>(*month)};
}

}  // namespace gpu_platform::base
