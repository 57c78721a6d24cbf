#pragma once

#include <vector>

#include "controller/snapshot.h"
#include "scheduling/order/fair_share_ranking.h"

namespace gpu_platform::controller {

struct Shares {
  bool is_counted = false;  // else the order does not ask what was used, and all use is 0
  std::vector<scheduling::ShareRow> rows;  // a team before what is below it
};

// The fair-share usage of teams and users and their places, as of the snapshot.
Shares shares_of(const Snapshot& snapshot);

}  // namespace gpu_platform::controller
