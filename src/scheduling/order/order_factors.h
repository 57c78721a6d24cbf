#pragma once

#include "base/units.h"
#include "model/job.h"
#include "scheduling/order/rank.h"

namespace gpu_platform::scheduling {

// What the weighted order takes into account, as people see it: 1 is all, except for the age.
struct OrderFactors {
  double age_days = 0;
  double priority = 0;
  double fair_share = 0;
  double size = 0;
};

// The sum of these, each times its weight, is the weighted sum of the job at that moment.
OrderFactors order_factors(const model::Job& job, const OrderBasis& basis, base::Instant now);

}  // namespace gpu_platform::scheduling
