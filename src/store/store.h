#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/audit_query.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/job.h"

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
  std::span<const Environment> new_environments;
  std::span<const std::string> dropped_environments;  // refs no job needs any more
  // The entries of the audit trail that the events make (model::audit_entry) go into the archive.
  // Older ones that are not wanted any more leave it, few at a time.
  AuditKeep audit_keep = {};
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

  // The environment stored under ref; kNotFound when dropped or never stored. Safe from any thread.
  virtual base::Result<std::string> environment(std::string_view ref) const = 0;
};

// Which ended jobs a reader wants. Absent filters match all.
struct ArchiveQuery {
  std::optional<std::string> user;
  std::optional<std::string> team;
  std::optional<std::string> name;
  std::vector<model::JobState> states;  // empty: every ended state
  std::vector<model::Label> labels;     // all must match
  base::Instant ended_since;            // unset: no bound
  model::JobId before;                  // only smaller ids (paging); invalid: no bound
  std::size_t limit = 100;              // newest (largest id) first
  // The bytes of specifications, by model::size_of(). A page ends with the job that makes it so
  // many, even if there are more; 0: no bound.
  std::size_t max_bytes = 0;
};

// An ended job, in the order in which ended jobs leave the archive.
struct JobEnding {
  base::Instant ended_at;
  model::JobId job;

  friend auto operator<=>(const JobEnding&, const JobEnding&) = default;
};

// The reading side of ended jobs and of the audit trail. Safe from any thread, never blocks the
// writer.
class Archive {
 public:
  virtual ~Archive() = default;
  virtual base::Result<std::optional<model::Job>> find(model::JobId job) const = 0;
  virtual base::Result<std::vector<model::Job>> list(const ArchiveQuery& query) const = 0;
  // The earliest endings behind `after` (default: all), in ascending order, at most `limit`.
  virtual base::Result<std::vector<JobEnding>> endings(const JobEnding& after,
                                                       std::size_t limit) const = 0;
  // The number of ended jobs. Costs O(1).
  virtual base::Result<std::uint64_t> job_count() const = 0;
  virtual base::Result<model::AuditPage> audit(const model::AuditQuery& query) const = 0;
};

}  // namespace gpu_platform::store
