#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "model/ids.h"
#include "store/sqlite/data_dir.h"
#include "store/sqlite/database.h"
#include "store/sqlite/durable_mark.h"
#include "store/sqlite/records.h"

// Compares a database with the mark of what was durable (durable_mark.h).

namespace gpu_platform::store {

// Says what the database lacks of what was durable; empty: nothing. `head`: its head row.
base::Result<std::string> what_is_missing(const Database& database, const Head& head,
                                          const Mark& mark);

// kFailedPrecondition, with what to do: the store was not damaged, but it is not the latest.
base::Error outdated_store(const StoreFiles& files, const std::string& missing);

// kDataLoss when the database alone, without its log, is older than what was copied into it: an
// older one was put beside a log that goes on from a newer one. No connection to it may be open.
base::Status check_base_of_log(const StoreFiles& files, const std::optional<Mark>& mark);

// What a store with this database has durably; what was copied is left out.
base::Result<Mark> mark_of(const Database& database, const Head& head);

// The highest id of a job that the archive or the last submission in the audit trail names.
base::Result<model::JobId> highest_job(const Database& database);

// The last job that the event gave an id to; invalid: none.
model::JobId last_job_of(const model::Event& event);

}  // namespace gpu_platform::store
