#pragma once

#include "accounting/exact_cost.h"
#include "model/ledger.h"
#include "model/price.h"

namespace gpu_platform::accounting {

// Returns what is billed of the line in [from, to): nothing of rest, and of what is not billed. A
// correction counts at its moment.
ExactCost charge_of(const model::LedgerLine& line, const model::PriceBook& prices,
                    model::Millis from, model::Millis to);

}  // namespace gpu_platform::accounting
