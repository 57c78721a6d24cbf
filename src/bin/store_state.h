#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/ids.h"
#include "store/sqlite/repair.h"

// What a check or a recovery of the store needs to know of other rooms.

namespace gpu_platform::bin {

// The environments that the jobs of the state need, with the job of each (store/sqlite/repair.h).
base::Result<std::map<std::string, model::JobId>> needed_environments(
    const store::StateSource& source);

// The lines that the events of the source add to the ledger. Where it begins with a snapshot of a
// version without a ledger, there are none of what was before.
base::Status made_lines(const store::StateSource& source, const store::VisitMadeLines& visit);

// What does not add up in the lines of a ledger and what goes on in the state of the source, a
// sentence each (accounting/balance.h). Lines go in time: what was before the end of the oldest is
// not looked at. Memory: 32 bytes for each line of a GPU.
base::Result<std::vector<std::string>> unbalanced_books(const store::StateSource& source,
                                                        const store::VisitLedger& visit_all);

// The highest id of a job that has output in the data directory; invalid: none has.
model::JobId last_job_with_output(const std::string& data_dir);

}  // namespace gpu_platform::bin
