#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/units.h"
#include "scheduling/quota/subjects.h"

namespace gpu_platform::scheduling {

// GPU-time, in the units of gpu_time(), that was used and given back by attempts that began in the
// present period.
struct PeriodUse {
  // By the type of the GPUs, as the attempts held them: a limit for a type or a family that is set
  // later in the period finds what was used before. None is zero.
  using ByType = std::map<std::string, std::uint64_t>;

  base::Instant begin;  // unset while no hours are limited
  std::map<QuotaSubject, ByType> used;

  friend bool operator==(const PeriodUse&, const PeriodUse&) = default;
};

}  // namespace gpu_platform::scheduling
