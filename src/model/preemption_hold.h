#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/units.h"
#include "model/allocation.h"
#include "model/ids.h"

namespace gpu_platform::model {

// By which rule others are stopped for a job.
enum class PreemptionRule : std::uint8_t {
  kClass,    // they are of a lower class
  kReclaim,  // they borrow, with any class, and the job is within its guarantee
  kOverdue,  // the job is overdue: they are of its class or below, and of other teams
};
inline constexpr std::size_t kPreemptionRules = 3;

// The resources that are kept for a waiting job while the jobs that hold them are stopped. No other
// job gets them.
struct PreemptionHold {
  JobId beneficiary;
  Allocation allocation;
  std::vector<AttemptId> victims;  // ascending; some may be gone already
  base::Instant decided_at;
  PreemptionRule rule = PreemptionRule::kClass;

  friend bool operator==(const PreemptionHold&, const PreemptionHold&) = default;
};

}  // namespace gpu_platform::model
