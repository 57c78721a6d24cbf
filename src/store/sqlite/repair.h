#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/ids.h"

// What `gpu-platform store check` and `gpu-platform store recover` do. Both need the data directory
// for themselves: kAlreadyExists while a daemon uses it.

namespace gpu_platform::store {

struct StoreReport {
  std::filesystem::path file;
  std::int64_t schema_version = 0;
  model::EventSeq first_event;  // invalid: the journal is empty
  model::EventSeq last_event;
  std::uint64_t jobs = 0;  // intact records of each kind
  std::uint64_t snapshots = 0;
  std::uint64_t environments = 0;
  std::uint64_t audit_entries = 0;
  std::vector<std::string> damages;  // one sentence each, naming table and record; empty: sound

  bool is_sound() const { return damages.empty(); }
};

// Reads and verifies every record and SQLite's own structures; changes nothing. The time it takes
// grows with the size of the database. kNotFound where there is no store; kDataLoss when the file
// cannot be read as a store at all.
base::Result<StoreReport> check_store(const std::filesystem::path& data_dir);

struct RecoveryReport {
  std::filesystem::path put_aside;  // the damaged database, unchanged
  StoreReport kept;
  std::vector<std::string> lost;  // one sentence each
  model::JobId next_job;          // ids go on there; invalid: as the events say
};

// Builds a new database of what can be read and puts it in the place of the damaged one, which is
// kept as store.db.damaged-N. Kept are the longest stretch of history that leads to the latest
// possible state without a gap (from the first event or from an intact snapshot on), every intact
// ended job, audit entry and environment. A last event says which jobs ended after that stretch,
// so that they do not run again, and from which id on jobs are numbered: no id of anything intact
// is given again, and where ids may be unknown a million is left out. kFailedPrecondition when
// nothing is damaged; kDataLoss when nothing could be saved. An interrupted recovery is completed
// by the next.
base::Result<RecoveryReport> recover_store(const std::filesystem::path& data_dir);

// ---- The choice that recovery makes, for tests ----

// Events first to last, all intact, or none when last < first.
struct EventRange {
  std::uint64_t first = 1;
  std::uint64_t last = 0;
  friend bool operator==(const EventRange&, const EventRange&) = default;
};

// The events worth keeping. `runs`: maximal stretches of intact events, ascending; `snapshots`:
// intact ones, by the last event they contain. The state after event `last` can be computed from
// what is kept; of several such choices the latest state wins, then the longest history.
EventRange choose_events(const std::vector<EventRange>& runs,
                         const std::vector<std::uint64_t>& snapshots);

}  // namespace gpu_platform::store
