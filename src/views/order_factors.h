#pragma once

#include "controller/snapshot.h"
#include "model/job.h"
#include "scheduling/order/order_factors.h"
#include "scheduling/order/rank.h"

namespace gpu_platform::views {

// Returns what the weighted order takes into account of the job, as of the snapshot.
inline scheduling::OrderFactors order_factors(const controller::Snapshot& snapshot,
                                              const model::Job& job) {
  return scheduling::order_factors(job, *snapshot.order, snapshot.at);
}

}  // namespace gpu_platform::views
