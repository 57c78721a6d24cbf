#pragma once

#include <cstdint>
#include <map>

#include "base/units.h"
#include "scheduling/quota/subjects.h"

namespace gpu_platform::scheduling {

// GPU-time, in gpu_time()'s units, that attempts which began in the present period used and gave
// back.
struct PeriodUse {
  base::Instant begin;  // unset while no hours are limited
  std::map<QuotaSubject, std::uint64_t> used;

  friend bool operator==(const PeriodUse&, const PeriodUse&) = default;
};

}  // namespace gpu_platform::scheduling
