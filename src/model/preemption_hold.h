#pragma once

#include <vector>

#include "base/units.h"
#include "model/allocation.h"
#include "model/ids.h"

namespace gpu_platform::model {

// What is kept for a waiting job while those who hold it are stopped: nobody else gets it.
struct PreemptionHold {
  JobId beneficiary;
  Allocation allocation;
  std::vector<AttemptId> victims;  // ascending; some may be gone already
  base::Instant decided_at;
  bool reclaims = false;  // of those who borrow, whatever their class

  friend bool operator==(const PreemptionHold&, const PreemptionHold&) = default;
};

}  // namespace gpu_platform::model
