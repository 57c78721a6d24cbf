#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/ledger.h"
#include "store/ledger.h"
#include "store/store.h"

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
  std::uint64_t ledger_lines = 0;
  std::vector<std::string> damages;  // one sentence each, naming table and record; empty: sound
  std::vector<std::string> missing;  // of a sound store: environments that its jobs need
  bool has_mark = true;              // store.marker says what was durable

  bool is_sound() const { return damages.empty(); }
};

// What a state is computed from: the newest snapshot, where there is one, and the events behind it.
struct StateSource {
  using Visit = std::function<base::Status(const model::EventRecord&)>;
  std::optional<StoredSnapshot> snapshot;
  std::function<base::Status(const Visit&)> replay;
};
// Returns the environments that the jobs of that state need, with the job of each.
using NeededEnvironments =
    std::function<base::Result<std::map<std::string, model::JobId>>(const StateSource&)>;
// Calls visit with the lines that each event of the source adds to the ledger, until it returns an
// error, which is passed on.
using VisitMadeLines =
    std::function<base::Status(model::EventSeq, std::span<const model::LedgerLine>)>;
using MadeLines = std::function<base::Status(const StateSource&, const VisitMadeLines&)>;
// Calls visit with each line that the ledger has, the oldest first.
using VisitLedger = std::function<base::Status(const Ledger::Visit&)>;
// Returns what does not add up in these lines and the state of the source, a sentence each.
using CheckBooks =
    std::function<base::Result<std::vector<std::string>>(const StateSource&, const VisitLedger&)>;
// The meaning of events, which is not known here.
struct EventMeaning {
  NeededEnvironments environments;  // empty: all are kept, and none is missed
  MadeLines lines;                  // empty: the ledger is not compared with the journal
  CheckBooks books;                 // empty: nothing is added up
};

// Told often how far the work is: what is read ("journal", "structure"), and how many of its
// records so far.
using StoreProgress = std::function<void(std::string_view what, std::uint64_t records)>;

// Reads and verifies every record and SQLite's own structures, and compares the ledger with what
// the journal makes, and adds it up; changes nothing. The time it takes grows with the size of the
// database. kNotFound where there is no store; kDataLoss when the file cannot be read as a store at
// all.
base::Result<StoreReport> check_store(const std::filesystem::path& data_dir,
                                      const EventMeaning& meaning = {},
                                      const StoreProgress& progress = {});

struct RecoveryOptions {
  model::JobId seen_job;  // the highest id of a job that was seen outside the store
  EventMeaning meaning = {};
  StoreProgress progress = {};
};

struct RecoveryReport {
  std::filesystem::path put_aside;  // the damaged database, unchanged
  StoreReport kept;
  std::vector<std::string> lost;  // one sentence each; empty: nothing that was acknowledged
  model::JobId next_job;          // ids go on there; invalid: as the events say
  bool is_ledger_due = false;     // its lines are made at the next start
};

// Builds a new database of what can be read and puts it in the place of the damaged one, which is
// kept as store.db.damaged-N. Every intact record is read, wherever in the files it lies: behind
// damage in the log, and in pages that nothing leads to any more. Kept are the longest stretch of
// history that leads to the latest possible state without a gap (from the first event or from an
// intact snapshot on), every intact ended job, audit entry and environment that is needed, and the
// jobs that later events submit: held, where not everything about them is known. A last event says
// which jobs ended after that stretch, so that they do not run again, and from which id on jobs are
// numbered: no id of anything intact or marked is given again, and where ids may be unknown a
// million is left out. A ledger that is damaged, or not that of the kept events, is left to the
// next start of the daemon, which makes it from the journal (Journal::ledger_gap).
// kFailedPrecondition when nothing is damaged; kDataLoss when nothing could be saved. An
// interrupted recovery is completed by the next.
base::Result<RecoveryReport> recover_store(const std::filesystem::path& data_dir,
                                           const RecoveryOptions& options = {});

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
