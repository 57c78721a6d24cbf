#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "store/sqlite/database.h"
#include "store/sqlite/inventory.h"
#include "store/sqlite/repair.h"

// Whether the ledger has the lines that the journal makes, and no others.

namespace gpu_platform::store {

// Adds what differs to `damages`. What the beginning of the table does not have any more has gone
// in time; lines of the gap are not due. The inventory's ledger must be whole. Costs a replay of
// the source.
base::Status compare_ledger(const Database& database, const Inventory& inventory,
                            const StateSource& source, const MadeLines& made,
                            std::vector<std::string>& damages);

}  // namespace gpu_platform::store
