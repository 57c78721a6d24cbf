#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/job.h"
#include "model/ledger.h"
#include "store/archive.h"

// What survives a crash. The journal is the truth; the archive of ended jobs is a projection of it.
// One contract suite (store_contract.h) runs against every implementation.

namespace gpu_platform::store {

struct Environment {
  std::string ref;    // JobSpec::environment_ref
  std::string bytes;  // NAME=VALUE strings, each ended by NUL
};

// What of the audit trail is still wanted.
struct AuditKeep {
  base::Instant not_before;  // unset: all
  std::uint64_t max_entries = UINT64_MAX;
};

// One batch: all of it becomes durable or none.
struct Commit {
  std::span<const model::EventRecord>
      events;  // consecutive, following the last one stored; not empty
  // They leave the core with this batch and go into the archive, each once.
  std::span<const model::Job> ended_jobs;
  std::span<const model::LedgerLine> ledger = {};  // that the events add, in their order
  std::span<const Environment> new_environments;
  std::span<const std::string> dropped_environments;  // refs no job needs any more
  // The entries of the audit trail that the events make (model::audit_entry) go into the archive.
  // Older ones that are not wanted any more leave it, few at a time.
  AuditKeep audit_keep = {};
  // Lines of the ledger that were over before this leave it, few batches at a time. Unset: none.
  base::Instant ledger_not_before = {};
  // No core has seen these events, so that `ledger` has none of their lines: they join the gap.
  bool has_no_lines = false;
};

// Events whose lines the ledger does not have yet: those after `after`, up to `last`. There is a
// gap where a version without a ledger stored them, or none of their lines could be saved.
struct LedgerGap {
  model::EventSeq after;
  model::EventSeq last;

  bool is_open() const { return after < last; }
  friend bool operator==(const LedgerGap&, const LedgerGap&) = default;
};

// Lines that go into the gap: those of an event, and of some that follow it.
struct LedgerBatch {
  model::EventSeq first;  // the first event that has some of them
  std::vector<model::LedgerLine> lines;
};

// How much work the medium can still take.
enum class Headroom {
  kAmple,
  kReserved,  // refuse new work; what is left is kept for the endings of accepted jobs
};

struct StoredSnapshot {
  model::EventSeq upto;  // the last event that the state contains
  std::string state;
};

// The writing side. Used by the one thread that owns the state.
class Journal {
 public:
  virtual ~Journal() = default;

  // Durable when it returns. An error means that it is not known what was stored: the caller must
  // end the process and recover.
  virtual base::Status append(const Commit& commit) = 0;

  // Calls visit for every stored event after `after` (zero: from the first), in order, until visit
  // returns an error, which is passed on. kDataLoss names the damaged record.
  virtual base::Status replay(
      model::EventSeq after,
      const std::function<base::Status(const model::EventRecord&)>& visit) const = 0;

  // The oldest event that the journal keeps, or would be: the first one, unless a recovery has lost
  // the beginning.
  virtual model::EventSeq first_seq() const = 0;

  // Seq of the last stored event; invalid when empty.
  virtual model::EventSeq last_seq() const = 0;

  // Stores a snapshot; the newest two are kept. kResourceExhausted means that the medium has no
  // room for it: nothing has changed and the journal goes on. Any other error is one as append's.
  virtual base::Status put_snapshot(const StoredSnapshot& snapshot) = 0;

  // Returns the newest snapshot with a correct checksum, or nothing if there is none. A damaged
  // newer one is skipped and reported through `damaged`, unless that is null.
  virtual base::Result<std::optional<StoredSnapshot>> newest_snapshot(
      std::string* damaged) const = 0;

  virtual Headroom headroom() = 0;

  // Removes ended jobs from the archive for good; those that are not there are passed over. Durable
  // when it returns; takes time in proportion to the jobs. kResourceExhausted means that the medium
  // has no room for it: nothing has changed and the journal goes on. Any other error is one as
  // append's. The journal keeps its events.
  virtual base::Status drop_jobs(std::span<const model::JobId> jobs) = 0;

  virtual LedgerGap ledger_gap() const = 0;

  // Fills the gap up to `upto`, which is in it: these are all lines of its events. The batches
  // follow each other. Durable when it returns, all of it or none. kResourceExhausted means that
  // the medium has no room for it: nothing has changed and the journal goes on. Any other error is
  // one as append's. May be called while replay visits.
  virtual base::Status put_ledger(std::span<const LedgerBatch> batches, model::EventSeq upto) = 0;

  // The environment stored under ref; kNotFound when dropped or never stored. Safe from any thread.
  virtual base::Result<std::string> environment(std::string_view ref) const = 0;
};

}  // namespace gpu_platform::store
