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
// were submitted or ended later, later entries of the audit trail, and the ids that were given.

namespace gpu_platform::store {

class Salvage {
 public:
  // `kept`: the events that the recovered journal begins with.
  explicit Salvage(EventRange kept) : kept_(kept) {}

  // Take everything that is intact, in any order.
  void add_batch(const std::vector<model::EventRecord>& events);
  void add_trail(std::uint64_t first_seq, const std::vector<model::AuditEntry>& entries);
  void add_job(const model::Job& job, std::uint64_t archived_seq);
  // An id that was given to a job, of which nothing else may be known.
  void add_id(model::JobId id) { last_job_id_ = std::max(last_job_id_, id.value); }

  // To be called once, when everything was added. `last_event`: the last that was stored;
  // `trail_until`: up to this event the trail is complete, but for its oldest part.
  void finish(std::uint64_t last_event, std::uint64_t trail_until);

  // Returns whether every id that was given up to `last_event` is known. The audit entries of a
  // lost batch say what it submitted. `trail_is_whole`: no record of the trail is damaged.
  bool knows_all_ids(std::uint64_t last_event, bool trail_is_whole) const;
  // Leaves out so many ids, because an unknown number was given.
  void leave_out_ids(std::uint64_t count) { left_out_ += count; }

  // Returns the batches that follow the kept events: submissions of jobs that have not ended, the
  // entries of the trail as CallAudited with their times, then StoreRepaired.
  std::vector<std::vector<model::EventRecord>> batches() const;
  // The last of their events.
  std::uint64_t last_event() const;

  std::uint64_t next_job_id() const { return last_job_id_ + left_out_ + 1; }

  // ---- What is lost, one sentence each; `until`: a time at which all of it had been stored.
  std::vector<std::string> losses(base::Instant until) const;

 private:
  struct Submission {
    std::uint64_t count = 0;
    base::Instant at;
  };
  // A submission behind the kept events whose event is intact.
  struct Restored {
    std::uint64_t batch = 0;  // its first event
    model::EventRecord record;
  };

  void note_ids(model::JobId first, std::uint64_t count, const model::EventRecord& record);
  void note_later(const model::EventRecord& record, std::uint64_t batch);
  bool is_certain(const Restored& restored) const;
  std::map<std::uint64_t, std::map<std::uint64_t, model::EventRecord>> records() const;
  std::vector<EventRange> missing_events() const;
  std::vector<std::string> lost_events(base::Instant until) const;
  std::string lost_jobs(base::Instant until) const;
  std::set<std::uint64_t> unknown_jobs() const;

  EventRange kept_;
  std::uint64_t stored_ = 0;                                       // last event that was stored
  std::uint64_t trail_until_ = 0;                                  // as finish() was told
  base::Instant kept_at_;                                          // time of the last of them
  std::uint64_t kept_job_ = 0;                                     // the highest id in them
  std::vector<EventRange> intact_;                                 // batches past the kept events
  std::map<std::uint64_t, base::Instant> began_;                   // time of their first events
  std::map<std::uint64_t, base::Instant> ended_at_;                // and of their last, by that
  std::map<std::uint64_t, std::vector<model::AuditEntry>> trail_;  // by their first event
  std::uint64_t oldest_trail_ = UINT64_MAX;                        // first event of the oldest row
  std::map<std::uint64_t, Submission> submitted_;                  // by first id
  std::map<std::uint64_t, EventRange> ids_;  // that an event gave, by the event; also ids left out
  std::map<std::uint64_t, Restored> restored_;  // by event
  std::set<std::uint64_t> touched_;             // jobs that later events are about
  std::set<std::uint64_t> held_;                // restored ones of which not everything is known
  std::vector<model::ArchivedEnd> ended_;
  std::set<std::uint64_t> archived_;  // the ids of those in the archive, of all times
  std::map<std::uint64_t, model::ArchivedEnd> ended_only_;  // that an event says alone
  std::uint64_t last_job_id_ = 0;
  std::uint64_t last_submission_ = 0;  // the event of the last one that is known
  std::uint64_t left_out_ = 0;
  base::Instant latest_;
};

}  // namespace gpu_platform::store
