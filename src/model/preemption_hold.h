#pragma once

#include <vector>

#include "base/units.h"
#include "model/allocation.h"
#include "model/ids.h"

namespace gpu_platform::model {

// The resources that are kept for a waiting job while the jobs that hold them are stopped. No other
// job gets them.
struct PreemptionHold {
  JobId beneficiary;
  Allocation allocation;
  std::vector<AttemptId> victims;  // ascending; some may be gone already
  base::Instant decided_at;
  bool reclaims = false;  // the victims borrow, whatever their class

  friend bool operator==(const PreemptionHold&, const PreemptionHold&) = default;
};

}  // namespace gpu_platform::model
