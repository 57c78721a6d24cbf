#pragma once

#include "controller/apply/application.h"

// The limits that the budgets of jobs set to their attempts, as budgets and prices change.

namespace gpu_platform::controller {

// The job's budget has changed. Call it while the attempt is not in the books' counts.
void limit_anew(Application& a, const model::Job& job, model::Attempt& attempt);

// Prices, discounts or teams have changed: attempts that are paid for a shorter time now run no
// longer than that. None runs longer than was said when it started. Cost: the attempts that hold
// something.
void shorten_limits(Application& a);

}  // namespace gpu_platform::controller
