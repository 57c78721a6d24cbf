#include "controller/shares.h"

#include "scheduling/order/fair_share_use.h"

namespace gpu_platform::controller {

Shares shares_of(const Snapshot& snapshot) {
  if (scheduling::needs_use(*snapshot.policy)) return {true, snapshot.order.ranking->rows()};
  Shares shares{false, scheduling::FairShareRanking(*snapshot.policy->organisation, {}, {}).rows()};
  for (scheduling::ShareRow& row : shares.rows) row.place = 0;
  return shares;
}

}  // namespace gpu_platform::controller
