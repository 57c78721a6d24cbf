#include "store/sqlite/sqlite_store.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "store/archive_query.h"
#include "store/batch.h"
#include "store/sqlite/archive_sql.h"
#include "store/sqlite/open_database.h"

namespace gpu_platform::store {

using base::ErrorCode;
using base::fail;

namespace {

// The log is copied into the database when it has this many pages (4 MiB). Larger means fewer but
// longer pauses of the committing thread; bench/store_bench.cpp measures them.
constexpr int kCheckpointPages = 1000;

// Likewise on a disk that is nearly full, where a log that grows eats the reserve.
constexpr int kCheckpointPagesWhenLow = 100;

// Settings of a connection, not of the file. secure_delete: dropped environments hold secrets.
constexpr const char* kWriterPragmas =
    "PRAGMA synchronous = FULL;"
    "PRAGMA wal_autocheckpoint = 0;"
    "PRAGMA journal_size_limit = 16777216;"
    "PRAGMA cache_size = -16384;"
    "PRAGMA temp_store = MEMORY;"
    "PRAGMA cell_size_check = ON;"
    "PRAGMA secure_delete = ON;";

}  // namespace

SqliteStore::SqliteStore(const SqliteOptions& options, DirectoryLock lock)
    : files_(options.dir),
      lock_(std::move(lock)),
      headroom_(files_.ballast, options.headroom),
      checkpoint_at_pages_(kCheckpointPages),
      readers_(files_.database.string(), std::max<std::size_t>(options.readers, 1)) {}

base::Result<std::unique_ptr<SqliteStore>> SqliteStore::open(const SqliteOptions& options) {
  const StoreFiles files(options.dir);
  TRY(prepare_directory(files, options.others_may_pass));
  TRY_ASSIGN(DirectoryLock lock, DirectoryLock::acquire(files));
  if (file_exists(files.recovered)) {
    return std::unexpected(damaged_store(files, "its recovery was interrupted; run it again"));
  }
  if (!file_exists(files.database)) TRY(create_store(files, lock, options.migrations));
  std::unique_ptr<SqliteStore> store(new SqliteStore(options, std::move(lock)));
  // On a full disk this frees the space that opening needs.
  store->headroom_.assess();
  if (auto status = store->open_database(options.migrations); !status) {
    return std::unexpected(store->explain(std::move(status).error()));
  }
  return store;
}

base::Status SqliteStore::open_database(std::span<const Migration> steps) {
  TRY(check_files(files_, lock_));
  TRY_ASSIGN(database_, Database::open(files_.database.string(), Database::Mode::kKeepLog));
  TRY(database_.execute(kWriterPragmas));
  TRY(check_schema(database_, steps));
  TRY_ASSIGN(head_, read_head(database_));
  TRY(check_journal_end());
  // Only now, when nothing is known to be damaged, is anything written.
  TRY(upgrade_schema(database_, steps));
  TRY_ASSIGN(writer_, RecordWriter::prepare(database_));
  TRY_ASSIGN(audit_writer_, AuditWriter::prepare(database_));
  TRY_ASSIGN(audit_, audit_writer_.read_extent());
  if (!file_exists(files_.marker)) TRY(write_private_file(files_.marker, "store.db\n"));
  TRY(lock_.note_open());
  // Starts the log anew, so that nothing of a transaction that a crash cut off stays behind
  // (wal_check.h relies on it). A disk too full for that keeps the log as it is.
  sqlite3_wal_checkpoint_v2(database_.handle(), nullptr, SQLITE_CHECKPOINT_TRUNCATE, nullptr,
                            nullptr);
  sqlite3_wal_hook(
      database_.handle(),
      [](void* pages, sqlite3*, const char*, int count) {
        *static_cast<int*>(pages) = count;
        return SQLITE_OK;
      },
      &wal_pages_);
  is_broken_ = false;
  return {};
}

base::Status SqliteStore::check_journal_end() const {
  TRY_ASSIGN(Statement row, database_.prepare("SELECT first_seq, count FROM journal "
                                              "ORDER BY first_seq DESC LIMIT 1"));
  TRY_ASSIGN(const bool has_row, row.step());
  const std::uint64_t last = has_row ? row.number(0) + row.number(1) - 1 : head_.first_seq - 1;
  if (last != head_.last_seq) {
    return fail(ErrorCode::kDataLoss,
                fmt::format("table journal ends at event {}, but event {} was stored", last,
                            head_.last_seq));
  }
  return {};
}

SqliteStore::~SqliteStore() {
  if (!database_.is_open() || is_broken_) return;
  sqlite3_wal_checkpoint_v2(database_.handle(), nullptr, SQLITE_CHECKPOINT_TRUNCATE, nullptr,
                            nullptr);
  (void)lock_.note_closed();
}

base::Error SqliteStore::explain(base::Error error) const {
  if (error.code != ErrorCode::kDataLoss) return error;
  return damaged_store(files_, error.message);
}

base::Status SqliteStore::append(const Commit& commit) {
  if (is_broken_) return fail(ErrorCode::kUnavailable, "the store failed; recover first");
  TRY(check_follows(last_seq(), commit.events));
  const std::string payload = encode_batch(commit.events);
  base::Status status = write(commit, payload);
  // Nothing of a batch that did not fit is stored, so it may be tried again: in the reserve, and at
  // the start of the log once that is copied.
  if (!status && status.error().code == ErrorCode::kResourceExhausted) {
    headroom_.release_ballast();
    checkpoint();
    status = write(commit, payload);
  }
  if (!status) {
    is_broken_ = true;
    return std::unexpected(explain(std::move(status).error()));
  }
  checkpoint_when_due();
  return {};
}

base::Status SqliteStore::write(const Commit& commit, std::string_view payload) {
  Head head;
  AuditExtent audit = audit_;
  TRY(database_.transaction([&]() -> base::Status {
    TRY_ASSIGN(head, write_rows(commit, payload, audit));
    return writer_.put_head(head);
  }));
  head_ = head;
  audit_ = audit;
  return {};
}

base::Result<Head> SqliteStore::write_rows(const Commit& commit, std::string_view payload,
                                           AuditExtent& audit) {
  Head head = head_;
  const std::uint64_t first = commit.events.front().seq.value;
  const std::uint64_t count = commit.events.size();
  head.last_seq = commit.events.back().seq.value;
  TRY(writer_.put_batch({first, count, batch_checksum(first, count, payload), payload}));
  for (const auto& environment : commit.new_environments) {
    TRY(writer_.put_environment(environment));
  }
  TRY_ASSIGN(const std::size_t added, writer_.put_jobs(commit.ended_jobs, head.last_seq));
  head.jobs += added;
  for (const auto& ref : commit.dropped_environments) TRY(writer_.drop_environment(ref));
  TRY(audit_writer_.put(commit, audit));
  return head;
}

void SqliteStore::checkpoint_when_due() {
  const bool is_due =
      wal_pages_ >= checkpoint_at_pages_ ||
      (wal_pages_ >= kCheckpointPagesWhenLow && headroom_.assess() == Headroom::kReserved);
  if (is_due) checkpoint();
}

// A failure is no error: what was committed is durable in the log, and a log that cannot be copied
// now is copied later.
void SqliteStore::checkpoint() {
  int in_log = 0;
  int copied = 0;
  const int code = sqlite3_wal_checkpoint_v2(database_.handle(), nullptr, SQLITE_CHECKPOINT_PASSIVE,
                                             &in_log, &copied);
  const bool is_complete = code == SQLITE_OK && copied == in_log;
  checkpoint_at_pages_ = is_complete ? kCheckpointPages : wal_pages_ + kCheckpointPages;
}

base::Status SqliteStore::replay(
    model::EventSeq after,
    const std::function<base::Status(const model::EventRecord&)>& visit) const {
  if (after.value > head_.last_seq || after.value + 1 < head_.first_seq) {
    return std::unexpected(damaged_store(
        files_, fmt::format("events after {} are wanted, table journal holds {} to {}", after.value,
                            head_.first_seq, head_.last_seq)));
  }
  bool is_visitors_error = false;
  base::Status status = replay_rows(after, [&](const model::EventRecord& record) {
    base::Status visited = visit(record);
    is_visitors_error = !visited;
    return visited;
  });
  if (status || is_visitors_error) return status;
  return std::unexpected(explain(std::move(status).error()));
}

base::Status SqliteStore::replay_rows(
    model::EventSeq after,
    const std::function<base::Status(const model::EventRecord&)>& visit) const {
  TRY_ASSIGN(Statement rows, database_.prepare(fmt::format(
                                 "SELECT {} FROM journal WHERE first_seq >= (SELECT max(first_seq) "
                                 "FROM journal WHERE first_seq <= ?) ORDER BY first_seq",
                                 kBatchColumns)));
  std::uint64_t next = after.value + 1;
  rows.bind(next);
  while (next <= head_.last_seq) {
    TRY_ASSIGN(const bool has_row, rows.step());
    const StoredBatch batch = has_row ? batch_of_row(rows) : StoredBatch{};
    if (!has_row || batch.first_seq > next || batch.last_seq() < next) {
      return fail(ErrorCode::kDataLoss,
                  fmt::format("table journal: the record of event {} is missing", next));
    }
    TRY(visit_batch(batch, model::EventSeq(next - 1), visit));
    next = batch.last_seq() + 1;
  }
  return {};
}

base::Status SqliteStore::put_snapshot(const StoredSnapshot& snapshot) {
  if (is_broken_) return fail(ErrorCode::kUnavailable, "the store failed; recover first");
  if (!snapshot.upto.valid() || snapshot.upto > last_seq()) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("a snapshot after event {} cannot be stored: the journal ends at {}",
                            snapshot.upto.value, head_.last_seq));
  }
  // Once in the log, once in the database. The reserve is for endings.
  const base::Bytes needed(2 * static_cast<std::int64_t>(snapshot.state.size()));
  if (headroom_.assess() == Headroom::kReserved || headroom_.available() < needed) {
    return fail(ErrorCode::kResourceExhausted, "the disk has no room for a snapshot");
  }
  // Nothing in a snapshot is secret: overwriting the oldest with zeros would double the work.
  TRY(database_.execute("PRAGMA secure_delete = OFF"));
  base::Status status = database_.transaction([&]() -> base::Status {
    TRY(writer_.put_snapshot(snapshot.upto.value, snapshot.state));
    return writer_.keep_newest_snapshots();
  });
  TRY(database_.execute("PRAGMA secure_delete = ON"));
  if (!status) {
    is_broken_ = status.error().code != ErrorCode::kResourceExhausted;
    return std::unexpected(explain(std::move(status).error()));
  }
  checkpoint_when_due();
  return {};
}

base::Status SqliteStore::drop_jobs(std::span<const model::JobId> jobs) {
  if (is_broken_) return fail(ErrorCode::kUnavailable, "the store failed; recover first");
  Head head = head_;
  base::Status status = database_.transaction([&]() -> base::Status {
    for (const model::JobId job : jobs) {
      TRY_ASSIGN(const bool existed, writer_.drop_job(job));
      head.jobs -= existed ? 1 : 0;
    }
    return writer_.put_head(head);
  });
  if (!status) {
    is_broken_ = status.error().code != ErrorCode::kResourceExhausted;
    return std::unexpected(explain(std::move(status).error()));
  }
  head_ = head;
  checkpoint_when_due();
  return {};
}

base::Result<std::optional<StoredSnapshot>> SqliteStore::newest_snapshot(
    std::string* damaged) const {
  TRY_ASSIGN(Statement rows, database_.prepare(fmt::format(
                                 "SELECT {} FROM snapshots ORDER BY upto DESC", kSnapshotColumns)));
  while (true) {
    auto has_row = rows.step();
    if (has_row && !*has_row) return std::nullopt;
    auto snapshot = has_row ? snapshot_of_row(rows)
                            : base::Result<StoredSnapshot>(std::unexpected(has_row.error()));
    if (snapshot && snapshot->upto <= last_seq()) return *std::move(snapshot);
    if (damaged != nullptr) {
      *damaged = snapshot ? fmt::format("snapshot after event {} is newer than the journal",
                                        snapshot->upto.value)
                          : snapshot.error().message;
    }
    // A damaged page ends the search: the journal alone will do.
    if (!has_row) return std::nullopt;
  }
}

base::Result<std::string> SqliteStore::environment(std::string_view ref) const {
  TRY_ASSIGN(const ReaderPool::Lease reader, readers_.borrow());
  TRY_ASSIGN(Statement * row,
             reader->statement(
                 fmt::format("SELECT {} FROM environments WHERE ref = ?", kEnvironmentColumns)));
  const StatementRun scope(*row);
  auto has_row = row->bind(ref).step();
  if (!has_row) return std::unexpected(explain(std::move(has_row).error()));
  if (!*has_row) {
    return fail(ErrorCode::kNotFound, fmt::format("no environment is stored under \"{}\"", ref));
  }
  auto environment = environment_of_row(*row);
  if (!environment) return std::unexpected(explain(std::move(environment).error()));
  return std::move(environment->bytes);
}

base::Result<std::optional<model::Job>> SqliteStore::find(model::JobId job) const {
  TRY_ASSIGN(const ReaderPool::Lease reader, readers_.borrow());
  TRY_ASSIGN(Statement * row,
             reader->statement(fmt::format("SELECT {} FROM jobs WHERE id = ?", kJobColumns)));
  const StatementRun scope(*row);
  auto has_row = row->bind(job.value).step();
  if (!has_row) return std::unexpected(explain(std::move(has_row).error()));
  if (!*has_row) return std::nullopt;
  auto found = job_of_row(*row);
  if (!found) return std::unexpected(explain(std::move(found).error()));
  return *std::move(found);
}

base::Result<std::vector<model::Job>> SqliteStore::list(const ArchiveQuery& query) const {
  std::vector<model::Job> jobs;
  std::size_t bytes = 0;
  if (query.limit == 0) return jobs;
  const ArchiveSql sql = archive_sql(query);
  TRY_ASSIGN(const ReaderPool::Lease reader, readers_.borrow());
  TRY_ASSIGN(Statement * rows, reader->statement(sql.text));
  const StatementRun scope(*rows);
  for (const auto& parameter : sql.parameters) {
    std::visit([&](const auto& value) { rows->bind(value); }, parameter);
  }
  while (true) {
    auto has_row = rows->step();
    if (!has_row) return std::unexpected(explain(std::move(has_row).error()));
    if (!*has_row) return jobs;
    auto job = job_of_row(*rows);
    if (!job) return std::unexpected(explain(std::move(job).error()));
    if (!matches(query, *job)) {
      return std::unexpected(damaged_store(
          files_, fmt::format("an index of table jobs gives job {} for another", job->id.value)));
    }
    jobs.push_back(*std::move(job));
    if (is_enough(query, jobs.back(), bytes)) return jobs;
  }
}

base::Result<std::vector<JobEnding>> SqliteStore::endings(const JobEnding& after,
                                                          std::size_t limit) const {
  TRY_ASSIGN(const ReaderPool::Lease reader, readers_.borrow());
  TRY_ASSIGN(Statement * rows,
             reader->statement("SELECT ended_at_ns, id FROM jobs INDEXED BY jobs_by_end "
                               "WHERE ended_at_ns >= ? AND (ended_at_ns > ? OR id > ?) "
                               "ORDER BY ended_at_ns, id LIMIT ?"));
  const StatementRun scope(*rows);
  const std::int64_t from = after.ended_at.unix_ns();
  rows->bind(from).bind(from).bind(after.job.value).bind(std::uint64_t{limit});
  std::vector<JobEnding> found;
  while (true) {
    auto has_row = rows->step();
    if (!has_row) return std::unexpected(explain(std::move(has_row).error()));
    if (!*has_row) return found;
    found.push_back({base::Instant(rows->integer(0)), model::JobId(rows->number(1))});
  }
}

base::Result<std::uint64_t> SqliteStore::job_count() const {
  TRY_ASSIGN(const ReaderPool::Lease reader, readers_.borrow());
  TRY_ASSIGN(Statement * row, reader->statement("SELECT jobs FROM head WHERE id = 1"));
  const StatementRun scope(*row);
  auto has_row = row->step();
  if (!has_row) return std::unexpected(explain(std::move(has_row).error()));
  return *has_row ? row->number(0) : 0;
}

base::Result<model::AuditPage> SqliteStore::audit(const model::AuditQuery& query) const {
  const AuditSql sql = audit_sql(query);
  TRY_ASSIGN(const ReaderPool::Lease reader, readers_.borrow());
  TRY_ASSIGN(Statement * rows, reader->statement(sql.text));
  const StatementRun scope(*rows);
  for (const std::int64_t parameter : sql.parameters) rows->bind(parameter);
  model::AuditPager pager(query);
  while (true) {
    auto has_row = rows->step();
    if (!has_row) return std::unexpected(explain(std::move(has_row).error()));
    if (!*has_row) return pager.done();
    auto row = audit_row_of(*rows);
    if (!row) return std::unexpected(explain(std::move(row).error()));
    while (!row->entries.empty()) {
      if (!pager.take(std::move(row->entries.back()))) return pager.done();
      row->entries.pop_back();
    }
  }
}

}  // namespace gpu_platform::store
