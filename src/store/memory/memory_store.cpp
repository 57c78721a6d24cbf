#include "store/memory/memory_store.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "store/archive_query.h"
#include "store/audit_batch.h"
#include "store/batch.h"
#include "store/ledger_batch.h"

namespace gpu_platform::store {

using base::ErrorCode;
using base::fail;

base::Status MemoryStore::append(const Commit& commit) {
  if (is_broken_) return fail(ErrorCode::kUnavailable, "the store failed; recover first");
  TRY(check_follows(last_seq_, commit.events));
  Written written;
  written.first_seq = commit.events.front().seq.value;
  written.batch.count = commit.events.size();
  written.batch.payload = encode_batch(commit.events);
  written.batch.checksum =
      batch_checksum(written.first_seq, written.batch.count, written.batch.payload);
  written.ended_jobs.assign(commit.ended_jobs.begin(), commit.ended_jobs.end());
  written.ledger.assign(commit.ledger.begin(), commit.ledger.end());
  written.new_environments.assign(commit.new_environments.begin(), commit.new_environments.end());
  written.dropped_environments.assign(commit.dropped_environments.begin(),
                                      commit.dropped_environments.end());
  written.audit = audit_entries_of(commit.events);
  written.audit_keep = commit.audit_keep;
  written.ledger_not_before = commit.ledger_not_before;
  written.has_no_lines = commit.has_no_lines;
  written_ = std::move(written);

  const SyncOutcome outcome = hook_ ? hook_(commit.events.back().seq) : SyncOutcome::kSynced;
  if (!written_) return fail(ErrorCode::kInternal, "the process died before the sync");
  if (outcome != SyncOutcome::kLost) sync();
  if (outcome == SyncOutcome::kSynced) return {};
  written_.reset();
  is_broken_ = true;
  return fail(ErrorCode::kInternal, "the journal could not be synced: injected fault");
}

void MemoryStore::sync() {
  const model::EventSeq before =
      std::exchange(last_seq_, model::EventSeq(written_->first_seq + written_->batch.count - 1));
  journal_.emplace(written_->first_seq, std::move(written_->batch));
  for (auto& job : written_->ended_jobs) jobs_.insert_or_assign(job.id, std::move(job));
  for (auto& environment : written_->new_environments) {
    environments_.insert_or_assign(environment.ref, std::move(environment.bytes));
  }
  for (const auto& ref : written_->dropped_environments) environments_.erase(ref);
  keep_audit(std::move(written_->audit), written_->audit_keep);
  if (written_->has_no_lines) {
    if (gap_.is_open()) ledger_.erase(ledger_.upper_bound(gap_.after.value), ledger_.end());
    gap_ = {gap_.is_open() ? gap_.after : before, last_seq_};
  }
  keep_ledger(*written_);
  written_.reset();
}

void MemoryStore::keep_audit(std::vector<model::AuditEntry> entries, const AuditKeep& keep) {
  if (entries.empty()) return;
  audit_entries_ += entries.size();
  audit_.emplace(entries.front().seq.value, std::move(entries));
  for (std::size_t dropped = 0; dropped < kAuditBatchesDropped && audit_.size() > 1; ++dropped) {
    const auto& oldest = audit_.begin()->second;
    const bool is_wanted =
        oldest.front().at >= keep.not_before && audit_entries_ <= keep.max_entries;
    if (is_wanted) return;
    audit_entries_ -= oldest.size();
    audit_.erase(audit_.begin());
  }
}

void MemoryStore::keep_ledger(Written& written) {
  if (written.ledger.empty()) return;
  ledger_.emplace(written.first_seq, std::move(written.ledger));
  if (!written.ledger_not_before.is_set()) return;
  const model::Millis not_before = model::millis_of(written.ledger_not_before);
  for (std::size_t dropped = 0; dropped < kLedgerBatchesDropped && ledger_.size() > 1; ++dropped) {
    if (span_of(ledger_.begin()->second).to >= not_before) return;
    ledger_.erase(ledger_.begin());
  }
}

base::Status MemoryStore::put_ledger(std::span<const LedgerBatch> batches, model::EventSeq upto) {
  if (is_broken_) return fail(ErrorCode::kUnavailable, "the store failed; recover first");
  TRY(check_fills(gap_, batches, upto));
  for (const LedgerBatch& batch : batches) ledger_.emplace(batch.first.value, batch.lines);
  gap_.after = upto;
  return {};
}

base::Status MemoryStore::visit(const LedgerQuery& query, const Visit& visit) const {
  for (const auto& [first, lines] : ledger_) {
    if (query.upto.valid() && first > query.upto.value) break;
    for (const model::LedgerLine& line : lines) {
      if (is_wanted(query, line)) TRY(visit(line));
    }
  }
  return {};
}

base::Result<model::EventSeq> MemoryStore::ledger_upto() const {
  return gap_.is_open() ? gap_.after : last_seq_;
}

void MemoryStore::forget_ledger() {
  ledger_.clear();
  gap_ = {{}, last_seq_};
}

void MemoryStore::crash() {
  written_.reset();
  is_broken_ = false;
}

base::Status MemoryStore::replay(
    model::EventSeq after,
    const std::function<base::Status(const model::EventRecord&)>& visit) const {
  if (after > last_seq_) {
    return fail(ErrorCode::kDataLoss, fmt::format("the journal ends at event {}, before event {}",
                                                  last_seq_.value, after.value));
  }
  auto it = journal_.upper_bound(after.value + 1);
  if (it != journal_.begin()) --it;
  for (; it != journal_.end(); ++it) {
    const Batch& batch = it->second;
    if (it->first + batch.count <= after.value + 1) continue;
    TRY(visit_batch({it->first, batch.count, batch.checksum, batch.payload}, after, visit));
  }
  return {};
}

base::Status MemoryStore::put_snapshot(const StoredSnapshot& snapshot) {
  if (is_broken_) return fail(ErrorCode::kUnavailable, "the store failed; recover first");
  if (!snapshot.upto.valid() || snapshot.upto > last_seq_) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("a snapshot after event {} cannot be stored: the journal ends at {}",
                            snapshot.upto.value, last_seq_.value));
  }
  snapshots_.insert_or_assign(
      snapshot.upto.value,
      Snapshot{snapshot_checksum(snapshot.upto.value, snapshot.state), snapshot.state});
  while (snapshots_.size() > 2) snapshots_.erase(snapshots_.begin());
  return {};
}

base::Result<std::optional<StoredSnapshot>> MemoryStore::newest_snapshot(
    std::string* damaged) const {
  for (auto it = snapshots_.rbegin(); it != snapshots_.rend(); ++it) {
    if (it->second.checksum == snapshot_checksum(it->first, it->second.state)) {
      return StoredSnapshot{model::EventSeq(it->first), it->second.state};
    }
    if (damaged != nullptr) {
      *damaged = fmt::format("snapshot after event {}: the checksum does not match", it->first);
    }
  }
  return std::nullopt;
}

base::Result<std::string> MemoryStore::environment(std::string_view ref) const {
  const auto it = environments_.find(ref);
  if (it == environments_.end()) {
    return fail(ErrorCode::kNotFound, fmt::format("no environment is stored under \"{}\"", ref));
  }
  return it->second;
}

base::Result<std::optional<model::Job>> MemoryStore::find(model::JobId job) const {
  const auto it = jobs_.find(job);
  if (it == jobs_.end()) return std::nullopt;
  return it->second;
}

base::Result<std::vector<model::Job>> MemoryStore::list(const ArchiveQuery& query) const {
  std::vector<model::Job> found;
  std::size_t bytes = 0;
  for (auto it = jobs_.rbegin(); it != jobs_.rend() && found.size() < query.limit; ++it) {
    if (!matches(query, it->second)) continue;
    found.push_back(it->second);
    if (is_enough(query, it->second, bytes)) break;
  }
  return found;
}

base::Status MemoryStore::drop_jobs(std::span<const model::JobId> jobs) {
  if (is_broken_) return fail(ErrorCode::kUnavailable, "the store failed; recover first");
  for (const model::JobId job : jobs) jobs_.erase(job);
  return {};
}

base::Result<std::vector<JobEnding>> MemoryStore::endings(const JobEnding& after,
                                                          std::size_t limit) const {
  std::vector<JobEnding> found;
  for (const auto& [id, job] : jobs_) {
    if (const JobEnding ending{job.ended_at, id}; ending > after) found.push_back(ending);
  }
  std::ranges::sort(found);
  found.resize(std::min(found.size(), limit));
  return found;
}

base::Result<base::Instant> MemoryStore::begins_at() const {
  base::Instant first;
  const auto take = [&](base::Instant at) {
    if (at.is_set() && (!first.is_set() || at < first)) first = at;
  };
  if (!audit_.empty()) take(audit_.begin()->second.front().at);
  for (const auto& [id, job] : jobs_) take(job.ended_at);
  return first;
}

base::Result<model::AuditPage> MemoryStore::audit(const model::AuditQuery& query) const {
  model::AuditPager pager(query);
  for (auto batch = audit_.rbegin(); batch != audit_.rend(); ++batch) {
    for (auto entry = batch->second.rbegin(); entry != batch->second.rend(); ++entry) {
      if (!pager.take(*entry)) return pager.done();
    }
  }
  return pager.done();
}

void MemoryStore::damage_event(model::EventSeq seq) {
  auto it = journal_.upper_bound(seq.value);
  CHECK(it != journal_.begin());
  --it;
  it->second.payload.back() = static_cast<char>(it->second.payload.back() ^ 1);
}

void MemoryStore::damage_snapshot(model::EventSeq upto) {
  const auto it = snapshots_.find(upto.value);
  CHECK(it != snapshots_.end() && !it->second.state.empty());
  it->second.state.back() = static_cast<char>(it->second.state.back() ^ 1);
}

}  // namespace gpu_platform::store
