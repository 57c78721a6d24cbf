#include "simulation/faults/lying_journal.h"

namespace gpu_platform::simulation {

base::Status LyingJournal::append(const store::Commit& commit) {
  TRY(store_held_back());
  Batch& batch = held_back_.emplace();
  batch.events.assign(commit.events.begin(), commit.events.end());
  batch.ended_jobs.assign(commit.ended_jobs.begin(), commit.ended_jobs.end());
  batch.ledger.assign(commit.ledger.begin(), commit.ledger.end());
  batch.new_environments.assign(commit.new_environments.begin(), commit.new_environments.end());
  batch.dropped_environments.assign(commit.dropped_environments.begin(),
                                    commit.dropped_environments.end());
  return {};
}

base::Status LyingJournal::store_held_back() {
  if (!held_back_) return {};
  const Batch batch = *std::exchange(held_back_, std::nullopt);
  return store_.append({batch.events, batch.ended_jobs, batch.ledger, batch.new_environments,
                        batch.dropped_environments});
}

base::Status LyingJournal::replay(
    model::EventSeq after,
    const std::function<base::Status(const model::EventRecord&)>& visit) const {
  model::EventSeq in_store = store_.last_seq();
  if (after < in_store) TRY(store_.replay(after, visit));
  if (!held_back_) return {};
  for (const model::EventRecord& record : held_back_->events) {
    if (record.seq > after) TRY(visit(record));
  }
  return {};
}

model::EventSeq LyingJournal::last_seq() const {
  return held_back_ ? held_back_->events.back().seq : store_.last_seq();
}

base::Result<std::string> LyingJournal::environment(std::string_view ref) const {
  if (held_back_) {
    for (const store::Environment& held : held_back_->new_environments) {
      if (held.ref == ref) return held.bytes;
    }
  }
  return store_.environment(ref);
}

base::Status LyingJournal::put_snapshot(const store::StoredSnapshot& snapshot) {
  if (snapshot.upto > store_.last_seq()) return {};  // its events are not stored yet
  return store_.put_snapshot(snapshot);
}

}  // namespace gpu_platform::simulation
