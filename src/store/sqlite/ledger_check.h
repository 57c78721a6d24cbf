#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "store/sqlite/database.h"
#include "store/sqlite/inventory.h"
#include "store/sqlite/repair.h"

// Whether the ledger has the lines that the journal makes, and no others, and whether they add up.

namespace gpu_platform::store {

// Adds what differs to `damages`. What the beginning of the table does not have any more has gone
// in time; lines of the gap are not due. The inventory's ledger must be whole. Costs a replay of
// the source.
base::Status compare_ledger(const Database& database, const Inventory& inventory,
                            const StateSource& source, const MadeLines& made,
                            std::vector<std::string>& damages);

// The same of what does not add up in the ledger, which must have all lines that are due. Nothing
// is added up while a gap is open. Costs a replay of the source.
base::Status add_up_ledger(const Database& database, const Inventory& inventory,
                           const StateSource& source, const CheckBooks& books,
                           std::vector<std::string>& damages);

}  // namespace gpu_platform::store
