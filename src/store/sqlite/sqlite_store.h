#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/result.h"
#include "store/ledger.h"
#include "store/sqlite/audit_table.h"
#include "store/sqlite/data_dir.h"
#include "store/sqlite/database.h"
#include "store/sqlite/disk_headroom.h"
#include "store/sqlite/durable_mark.h"
#include "store/sqlite/latest_endings.h"
#include "store/sqlite/ledger_table.h"
#include "store/sqlite/reader_pool.h"
#include "store/sqlite/records.h"
#include "store/sqlite/schema.h"
#include "store/store.h"

namespace gpu_platform::store {

struct SqliteOptions {
  std::filesystem::path dir;
  DiskHeadroomOptions headroom;
  std::size_t readers = 4;  // connections for readers, at most
  // A directory that is made lets other users pass to what lies below it, but not look: 0711 and
  // not 0700. The store's files are for their owner alone either way.
  bool others_may_pass = false;
  // Go on with a store that is older than its mark: what is missing is given up, and the journal
  // says so (StoreRepaired), with ids of jobs behind all that were given. `seen_job`: the highest
  // id that was seen elsewhere.
  bool accept_loss = false;
  model::JobId seen_job;
  std::span<const Migration> migrations = store::migrations();  // must outlive the store
};

// The store in one SQLite database (WAL, synchronous=FULL): every batch is one transaction, synced
// before append returns. Journal functions belong to one thread, except environment(); functions of
// the archive and of the ledger are safe from any thread.
class SqliteStore final : public Journal, public Archive, public Ledger {
 public:
  // Opens the store of a data directory, made where there is none. Errors: kAlreadyExists when
  // another process uses the directory (its pid is named), kDataLoss when the database is damaged
  // or missing where one was, kFailedPrecondition when a newer program wrote it, or when it is
  // older than work that was acknowledged here (durable_mark.h).
  static base::Result<std::unique_ptr<SqliteStore>> open(const SqliteOptions& options);

  // What a person should know of the opening; empty: nothing.
  const std::string& note() const { return note_; }

  ~SqliteStore() override;
  SqliteStore(const SqliteStore&) = delete;
  SqliteStore& operator=(const SqliteStore&) = delete;

  base::Status append(const Commit& commit) override;
  base::Status replay(
      model::EventSeq after,
      const std::function<base::Status(const model::EventRecord&)>& visit) const override;
  // From now on `progress` sees now and again how many of the events of a replay were visited, and
  // at its end that all were. Empty: not any more.
  using ReplayProgress = std::function<void(std::uint64_t done, std::uint64_t all)>;
  void tell_of_replays(ReplayProgress progress) { replay_progress_ = std::move(progress); }
  model::EventSeq first_seq() const override { return model::EventSeq(head_.first_seq); }
  model::EventSeq last_seq() const override { return model::EventSeq(head_.last_seq); }
  base::Status put_snapshot(const StoredSnapshot& snapshot) override;
  base::Result<std::optional<StoredSnapshot>> newest_snapshot(std::string* damaged) const override;
  base::Status drop_jobs(std::span<const model::JobId> jobs) override;
  Headroom headroom() override { return headroom_.assess(); }
  LedgerGap ledger_gap() const override { return gap_; }
  base::Status put_ledger(std::span<const LedgerBatch> batches, model::EventSeq upto) override;
  base::Result<std::string> environment(std::string_view ref) const override;

  base::Result<std::optional<model::Job>> find(model::JobId job) const override;
  base::Result<std::vector<model::Job>> list(const ArchiveQuery& query) const override;
  base::Result<std::vector<JobEnding>> endings(const JobEnding& after,
                                               std::size_t limit) const override;
  base::Result<std::uint64_t> job_count() const override;
  base::Result<base::Instant> begins_at() const override;
  base::Result<model::AuditPage> audit(const model::AuditQuery& query) const override;

  base::Status visit(const LedgerQuery& query, const Visit& visit) const override;
  base::Result<model::EventSeq> ledger_upto() const override;

 private:
  // What a commit changes beside its rows; true once it is durable.
  struct Extents {
    Head head;
    AuditExtent audit;
    LedgerExtent ledger;
    LedgerGap gap;
  };
  SqliteStore(const SqliteOptions& options, DirectoryLock lock);

  base::Status open_database(const SqliteOptions& options);
  base::Status open_mark(const SqliteOptions& options, const std::optional<Mark>& known,
                         const std::string& missing);
  base::Status accept_loss(const Mark& known, model::JobId seen, const std::string& missing);
  base::Status learn_endings();
  base::Status check_journal_end() const;
  base::Status replay_rows(
      model::EventSeq after,
      const std::function<base::Status(const model::EventRecord&)>& visit) const;
  base::Status write(const Commit& commit, const StoredBatch& batch);
  base::Status write_rows(const Commit& commit, const StoredBatch& batch, Extents& extents);
  base::Status write_ledger(const Commit& commit, Extents& extents);
  void mark_durable(const Commit& commit, const StoredBatch& batch);
  base::Result<bool> list_from(const ArchiveQuery& query, model::JobId from, std::size_t& bytes,
                               std::vector<model::Job>& jobs) const;
  void note_copied();
  void checkpoint_when_due();
  bool is_log_too_long_for_disk();
  void checkpoint();
  base::Error explain(base::Error error) const;

  const StoreFiles files_;
  DirectoryLock lock_;  // released last
  DiskHeadroom headroom_;
  Database database_;
  RecordWriter writer_;
  AuditWriter audit_writer_;
  LedgerWriter ledger_writer_;
  ReplayProgress replay_progress_;
  Head head_;
  AuditExtent audit_;
  LedgerExtent ledger_;
  LedgerGap gap_;
  Mark mark_;
  MarkWriter mark_writer_;
  std::string note_;
  bool is_broken_ = true;  // not opened yet, or an append failed
  int wal_pages_ = 0;      // after the last commit, told by SQLite
  int checkpoint_at_pages_ = 0;
  mutable ReaderPool readers_;  // closed before the writing connection, which cleans up the log
  LatestEndings latest_;
  std::jthread learner_;  // reads the endings of a long history; ends before what it uses
};

}  // namespace gpu_platform::store
