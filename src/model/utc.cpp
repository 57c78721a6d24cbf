#include "model/utc.h"

#include <cstdint>

#include <fmt/format.h>

namespace gpu_platform::model {

namespace {

bool is_leap(int year) {
  return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

}  // namespace

// The calendar by counting: <chrono> has clocks and is not for pure code.
std::string utc(base::Instant at) {
  constexpr std::int64_t kSecondsOfDay = 86'400;
  const std::int64_t seconds = at.unix_ns() / base::seconds(1).value();
  std::int64_t day = seconds / kSecondsOfDay;
  int year = 1970;
  for (; day >= (is_leap(year) ? 366 : 365); ++year) day -= is_leap(year) ? 366 : 365;
  const int days[] = {31, is_leap(year) ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  int month = 0;
  for (; day >= days[month]; ++month) day -= days[month];
  const std::int64_t second = seconds % kSecondsOfDay;
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", year, month + 1, day + 1,
                     second / 3600, second / 60 % 60, second % 60);
}

}  // namespace gpu_platform::model
