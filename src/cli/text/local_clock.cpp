#include "cli/text/local_clock.h"

namespace gpu_platform::cli {

namespace {

constexpr std::int64_t kSecond = base::seconds(1).value();

}  // namespace

std::tm local_parts(base::Instant at) {
  const std::time_t seconds = at.unix_ns() / kSecond;
  std::tm parts{};
  ::localtime_r(&seconds, &parts);
  return parts;
}

std::optional<base::Instant> instant_of(std::tm parts) {
  constexpr std::time_t kLatest = INT64_MAX / kSecond;
  parts.tm_isdst = -1;
  const std::time_t seconds = std::mktime(&parts);
  if (seconds <= 0 || seconds > kLatest) return std::nullopt;
  return base::Instant(static_cast<std::int64_t>(seconds) * kSecond);
}

}  // namespace gpu_platform::cli
