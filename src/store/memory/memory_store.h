#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "store/ledger.h"
#include "store/store.h"

namespace gpu_platform::store {

// What happens between the moment at which a batch is written and the one at which it is synced.
enum class SyncOutcome {
  kSynced,         // durable, and append says so
  kLost,           // the process ends before the sync: append fails, nothing of it is kept
  kSyncedUnheard,  // durable, but the process ends before it hears so: append fails
};

// A journal and archive in memory for simulation and tests: the same promises as the real ones, and
// faults on demand. Deterministic; no clock, thread or file; one thread only, readers included.
// After a failed append it refuses everything but crash(), as the journal's contract asks of its
// user. A value: a copy is an independent store with the same contents.
class MemoryStore final : public Journal, public Archive, public Ledger {
 public:
  // Asked once per batch after it is written and before it is synced, with the last event's seq.
  using SyncHook = std::function<SyncOutcome(model::EventSeq last)>;

  base::Status append(const Commit& commit) override;
  base::Status replay(
      model::EventSeq after,
      const std::function<base::Status(const model::EventRecord&)>& visit) const override;
  model::EventSeq first_seq() const override { return model::EventSeq(1); }
  model::EventSeq last_seq() const override { return last_seq_; }
  base::Status put_snapshot(const StoredSnapshot& snapshot) override;
  base::Result<std::optional<StoredSnapshot>> newest_snapshot(std::string* damaged) const override;
  Headroom headroom() override { return headroom_; }
  base::Status drop_jobs(std::span<const model::JobId> jobs) override;
  LedgerGap ledger_gap() const override { return gap_; }
  base::Status put_ledger(std::span<const LedgerBatch> batches, model::EventSeq upto) override;
  base::Result<std::string> environment(std::string_view ref) const override;

  base::Result<std::optional<model::Job>> find(model::JobId job) const override;
  base::Result<std::vector<model::Job>> list(const ArchiveQuery& query) const override;
  // Costs a look at all ended jobs.
  base::Result<std::vector<JobEnding>> endings(const JobEnding& after,
                                               std::size_t limit) const override;
  base::Result<std::uint64_t> job_count() const override { return jobs_.size(); }
  base::Result<base::Instant> begins_at() const override;
  base::Result<model::AuditPage> audit(const model::AuditQuery& query) const override;

  base::Status visit(const LedgerQuery& query, const Visit& visit) const override;
  base::Result<model::EventSeq> ledger_upto() const override;

  // ---- Faults ----

  // The process dies here: what was written but not synced is gone, what was synced is there. May
  // be called at any time, from inside the sync hook too (the batch is then lost and append fails).
  // Hook and room stay as they were set.
  void crash();

  // Decides about every batch from now on; an empty hook syncs them all.
  void on_written(SyncHook hook) { hook_ = std::move(hook); }

  // What room() answers from now on. Appends go on working: kReserved refuses nothing by itself.
  void set_headroom(Headroom headroom) { headroom_ = headroom; }

  // Flips one bit of the stored batch that holds `seq`, or of the snapshot taken at `upto`.
  void damage_event(model::EventSeq seq);
  void damage_snapshot(model::EventSeq upto);

  // From now on this is the store of a version that had no ledger.
  void forget_ledger();

 private:
  struct Batch {
    std::uint64_t count = 0;
    std::uint64_t checksum = 0;
    std::string payload;
  };
  struct Snapshot {
    std::uint64_t checksum = 0;
    std::string state;
  };
  struct Written {
    std::uint64_t first_seq = 0;
    Batch batch;
    std::vector<model::Job> ended_jobs;
    std::vector<model::LedgerLine> ledger;
    std::vector<Environment> new_environments;
    std::vector<std::string> dropped_environments;
    std::vector<model::AuditEntry> audit;
    AuditKeep audit_keep;
    base::Instant ledger_not_before;
    bool has_no_lines = false;
  };

  void sync();
  void keep_audit(std::vector<model::AuditEntry> entries, const AuditKeep& keep);
  void keep_ledger(Written& written);

  std::map<std::uint64_t, Batch> journal_;  // by first seq
  std::map<std::uint64_t, Snapshot> snapshots_;
  std::map<model::JobId, model::Job> jobs_;
  std::map<std::string, std::string, std::less<>> environments_;
  std::map<std::uint64_t, std::vector<model::AuditEntry>> audit_;  // by first seq of the batch
  std::uint64_t audit_entries_ = 0;
  std::map<std::uint64_t, std::vector<model::LedgerLine>> ledger_;  // by first seq of the batch
  LedgerGap gap_;
  model::EventSeq last_seq_;
  std::optional<Written> written_;
  bool is_broken_ = false;
  Headroom headroom_ = Headroom::kAmple;
  SyncHook hook_;
};

}  // namespace gpu_platform::store
