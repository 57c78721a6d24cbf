#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/event.h"
#include "model/job.h"
#include "store/sqlite/repair.h"

// Collects what a recovery keeps beside the events from which the state can be computed: jobs that
// ended later, later entries of the audit trail, and the ids that were given.

namespace gpu_platform::store {

class Salvage {
 public:
  // `kept`: the events that the recovered journal begins with.
  explicit Salvage(EventRange kept) : kept_(kept) {}

  // Take everything that is intact, in any order.
  void add_batch(const std::vector<model::EventRecord>& events);
  void add_trail(std::uint64_t first_seq, const std::vector<model::AuditEntry>& entries);
  void add_job(const model::Job& job, std::uint64_t archived_seq);

  // Returns whether every id that was given up to `last_event` is known. The audit entries of a
  // lost batch say what it submitted. `trail_is_whole`: no record of the trail is damaged.
  bool knows_all_ids(std::uint64_t last_event, bool trail_is_whole) const;
  // Leaves out so many ids, because an unknown number was given.
  void leave_out_ids(std::uint64_t count) { left_out_ += count; }

  // Returns the batches that follow the kept events: the entries of the trail as CallAudited with
  // their times, then StoreRepaired.
  std::vector<std::vector<model::EventRecord>> batches() const;
  // The last of their events.
  std::uint64_t last_event() const;

  std::uint64_t trail_entries() const;
  std::uint64_t next_job_id() const { return last_job_id_ + left_out_ + 1; }
  // Returns the jobs that were submitted after the kept events and are not archived, so that they
  // are lost: "31, 33 to 35". Empty: none.
  std::string lost_jobs() const;

 private:
  void note_ids(model::JobId first, std::uint64_t count, std::uint64_t at_event);

  EventRange kept_;
  std::vector<EventRange> intact_;                                 // batches past the kept events
  std::map<std::uint64_t, std::vector<model::AuditEntry>> trail_;  // likewise, by their first event
  std::uint64_t oldest_trail_ = UINT64_MAX;                        // first event of the oldest row
  std::map<std::uint64_t, std::uint64_t> submitted_;               // likewise, first id to count
  std::vector<model::ArchivedEnd> ended_;
  std::set<std::uint64_t> archived_;  // the ids of ended_
  std::uint64_t last_job_id_ = 0;
  std::uint64_t last_submission_ = 0;  // the event of the last one that is known
  std::uint64_t left_out_ = 0;
  base::Instant latest_;
};

}  // namespace gpu_platform::store
