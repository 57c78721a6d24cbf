#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "model/audit_query.h"
#include "model/ids.h"
#include "model/job.h"
#include "model/job_spec.h"

// The reading side of what has left the core: ended jobs and the audit trail.

namespace gpu_platform::store {

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

// A job is found here before a snapshot without it is published, and the trail has the entry of a
// command when the command is acknowledged. Safe from any thread; never blocks the writer. Calls
// take the time of a local query.
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
  // Returns when the earliest record that is still kept was made: an entry of the trail, of which
  // every start of the daemon makes one, or the end of a job. Unset: there is none. Costs two
  // look-ups in an index.
  virtual base::Result<base::Instant> begins_at() const = 0;
};

}  // namespace gpu_platform::store
