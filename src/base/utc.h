#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"

// Times as people and documents write them: RFC 3339 in UTC.

namespace gpu_platform::base {

enum class Fraction : std::uint8_t {  // the digits behind the seconds
  kNone = 0,
  kMilliseconds = 3,
  kMicroseconds = 6,
  kNanoseconds = 9,
};

// "2026-07-01T12:00:00.250Z". What the fraction does not hold is cut, not rounded.
void append_rfc3339(std::string& out, Instant at, Fraction fraction = Fraction::kMilliseconds);
std::string utc(Instant at, Fraction fraction = Fraction::kNone);

// A time since 1970, also one that an Instant does not hold.
struct UnixTime {
  std::int64_t seconds = 0;
  std::int64_t nanoseconds = 0;  // 0 to 999,999,999

  friend bool operator==(const UnixTime&, const UnixTime&) = default;
};
// Reads RFC 3339 with "Z" or an offset and up to nine digits of fraction; years 0000 to 9999. A
// leap second is refused.
std::optional<UnixTime> parse_unix_time(std::string_view text);
// The same of times from 1970 to 2261, which an Instant holds.
std::optional<Instant> parse_rfc3339(std::string_view text);

}  // namespace gpu_platform::base
