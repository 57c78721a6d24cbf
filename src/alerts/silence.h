#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "alerts/alert.h"
#include "base/result.h"
#include "base/units.h"

namespace gpu_platform::alerts {

// Which alerts send no messages for a time. They are listed all the same.
struct Silence {
  std::uint64_t id = 0;
  // Labels and their patterns ("dgx-a*"); "rule" and "severity" (large or small letters) stand for
  // those of the alert, and a "job" that is an array for its members. All must match.
  std::map<std::string, std::string, std::less<>> matchers;
  base::Instant from;
  base::Instant until;
  std::string by;  // the user
  std::string comment;

  friend bool operator==(const Silence&, const Silence&) = default;
};

inline constexpr std::size_t kMaxSilences = 1'000;
inline constexpr std::size_t kMaxMatchers = 16;
inline constexpr base::Duration kLongestSilence = base::hours(24 * 366);

// The names that a matcher may have.
bool is_matcher_name(std::string_view name);
// Refuses a silence without matchers, with unknown names, or that ends before it begins or too
// late.
base::Status check(const Silence& silence, base::Instant now);
bool is_over(const Silence& silence, base::Instant now);
// Whether the silence is in force and is about the alert.
bool silences(const Silence& silence, const Alert& alert, base::Instant now);

}  // namespace gpu_platform::alerts
