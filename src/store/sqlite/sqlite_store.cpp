#include "store/sqlite/sqlite_store.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "store/archive_query.h"
#include "store/batch.h"
#include "store/ledger_batch.h"
#include "store/sqlite/archive_sql.h"
#include "store/sqlite/mark_check.h"
#include "store/sqlite/open_database.h"

namespace gpu_platform::store {

using base::ErrorCode;
using base::fail;

namespace {

// The log is copied into the database when it has this many pages (4 MiB). Larger means fewer but
// longer pauses of the committing thread; bench/store_bench.cpp measures them.
constexpr int kCheckpointPages = 1000;

// The same on a disk that is nearly full, where a log that grows eats the reserve.
constexpr int kCheckpointPagesWhenLow = 100;

// Events between two reports of a replay.
constexpr std::uint64_t kEventsOfProgress = 1024;

// Settings of a connection, not of the file. secure_delete: dropped environments hold secrets.
constexpr const char* kWriterPragmas =
    "PRAGMA synchronous = FULL;"
    "PRAGMA wal_autocheckpoint = 0;"
    "PRAGMA journal_size_limit = 16777216;"
    "PRAGMA cache_size = -16384;"
    "PRAGMA temp_store = MEMORY;"
    "PRAGMA cell_size_check = ON;"
    "PRAGMA secure_delete = ON;";

// A copy that SQLite made (VACUUM INTO, a dump) has no log mode.
base::Status keep_log(const Database& database) {
  TRY_ASSIGN(const std::string mode, database.query_text("PRAGMA journal_mode = WAL"));
  if (mode == "wal") return {};
  return fail(ErrorCode::kInternal, fmt::format("SQLite keeps journal mode {}", mode));
}

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
  if (auto status = store->open_database(options); !status) {
    return std::unexpected(store->explain(std::move(status).error()));
  }
  return store;
}

base::Status SqliteStore::open_database(const SqliteOptions& options) {
  const std::span<const Migration> steps = options.migrations;
  const std::optional<Mark> known = read_mark(files_.marker);
  TRY(check_files(files_, lock_, known, options.accept_loss));
  TRY_ASSIGN(database_, Database::open(files_.database.string(), Database::Mode::kKeepLog));
  TRY(database_.execute(kWriterPragmas));
  TRY(check_schema(database_, steps));
  TRY_ASSIGN(head_, read_head(database_));
  TRY(check_journal_end());
  std::string missing;
  if (known) {
    TRY_ASSIGN(missing, what_is_missing(database_, head_, *known));
  }
  if (!missing.empty() && !options.accept_loss) {
    return std::unexpected(outdated_store(files_, missing));
  }
  // Only now, when nothing is known to be damaged, is anything written.
  TRY(keep_log(database_));
  TRY(upgrade_schema(database_, steps));
  TRY_ASSIGN(writer_, RecordWriter::prepare(database_));
  TRY_ASSIGN(audit_writer_, AuditWriter::prepare(database_));
  TRY_ASSIGN(audit_, audit_writer_.read_extent());
  TRY_ASSIGN(ledger_writer_, LedgerWriter::prepare(database_));
  TRY_ASSIGN(ledger_, ledger_writer_.read_extent());
  TRY_ASSIGN(gap_, ledger_gap_of(database_));
  TRY(lock_.note_open());
  // Starts the log anew, so that nothing of a transaction that a crash cut off stays behind
  // (wal_check.h relies on it). A disk too full for that keeps the log as it is.
  const bool is_copied =
      sqlite3_wal_checkpoint_v2(database_.handle(), nullptr, SQLITE_CHECKPOINT_TRUNCATE, nullptr,
                                nullptr) == SQLITE_OK;
  if (is_copied) note_copied();
  sqlite3_wal_hook(
      database_.handle(),
      [](void* pages, sqlite3*, const char*, int count) {
        *static_cast<int*>(pages) = count;
        return SQLITE_OK;
      },
      &wal_pages_);
  is_broken_ = false;
  TRY(open_mark(options, known, missing));
  return learn_endings();
}

base::Status SqliteStore::open_mark(const SqliteOptions& options, const std::optional<Mark>& known,
                                    const std::string& missing) {
  const Mark copied = mark_.copied_seq == 0 && known && missing.empty() ? *known : mark_;
  TRY_ASSIGN(mark_, mark_of(database_, head_));
  mark_.copied_seq = copied.copied_seq;
  mark_.copied_bytes = copied.copied_bytes;
  if (known) mark_.last_job = std::max(mark_.last_job, known->last_job);
  if (!missing.empty()) return accept_loss(*known, options.seen_job, missing);
  if (!known) {
    note_ = fmt::format(
        "{} does not record what was durable (a store of an earlier version has no such mark; else "
        "it "
        "was damaged or removed): it is made anew from the database",
        files_.marker.string());
    // A disk that is full has no room for it: the next start tries again.
    (void)make_marker(files_.marker, mark_);
  }
  mark_writer_ = MarkWriter(files_.marker);
  // What a killed program left in the log is synced with its copy alone.
  if (mark_.copied_seq == mark_.last_seq) mark_writer_.write(mark_);
  return {};
}

// The log is copied, and the file synced.
void SqliteStore::note_copied() {
  std::error_code error;
  const std::uint64_t bytes = std::filesystem::file_size(files_.database, error);
  mark_.copied_seq = head_.last_seq;
  mark_.copied_bytes = error ? 0 : bytes;
}

base::Status SqliteStore::accept_loss(const Mark& known, model::JobId seen,
                                      const std::string& missing) {
  mark_.last_job = std::max(mark_.last_job, seen.value);
  const model::EventRecord repaired{model::EventSeq(head_.last_seq + 1), known.at,
                                    model::StoreRepaired{mark_.last_job, {}}};
  TRY(append({.events = {&repaired, 1}, .has_no_lines = true}));
  TRY(make_marker(files_.marker, mark_));
  mark_writer_ = MarkWriter(files_.marker);
  note_ =
      fmt::format("loss accepted: {}; the next job gets an id after {}", missing, mark_.last_job);
  return {};
}

// So many are read at once; more would keep the log from being copied meanwhile.
constexpr std::size_t kEndingsAtOnce = 20'000;

// A long history is read beside the daemon's start, which is not to wait for it.
base::Status SqliteStore::learn_endings() {
  const auto learn = [this](const std::stop_token& stop) {
    JobEnding last;
    while (!stop.stop_requested()) {
      const auto some = endings(last, kEndingsAtOnce);
      if (!some) return;  // lists go on without
      for (const JobEnding& ending : *some) latest_.note(ending.job, ending.ended_at);
      if (some->size() < kEndingsAtOnce) return latest_.set_complete();
      last = some->back();
    }
  };
  if (head_.jobs < kEndingsAtOnce) {
    learn(std::stop_token());
  } else {
    learner_ = std::jthread(learn);
  }
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
  learner_.request_stop();
  if (learner_.joinable()) learner_.join();
  if (!database_.is_open() || is_broken_) return;
  const int code = sqlite3_wal_checkpoint_v2(database_.handle(), nullptr,
                                             SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr);
  if (code == SQLITE_OK) {
    note_copied();
    mark_writer_.write(mark_);
  }
  (void)lock_.note_closed();
}

base::Error SqliteStore::explain(base::Error error) const {
  if (error.code != ErrorCode::kDataLoss) return error;
  return damaged_store(files_, error.message);
}

base::Status SqliteStore::append(const Commit& commit) {
  if (is_broken_) return fail(ErrorCode::kUnavailable, "the store failed; recover first");
  TRY(check_follows(last_seq(), commit.events));
  // The commits before this one are copied now, so that none waits for the copy of its own pages.
  checkpoint_when_due();
  const std::string payload = encode_batch(commit.events);
  const std::uint64_t first = commit.events.front().seq.value;
  const std::uint64_t count = commit.events.size();
  const StoredBatch batch{first, count, batch_checksum(first, count, payload), payload};
  for (const model::Job& job : commit.ended_jobs) latest_.note(job.id, job.ended_at);
  base::Status status = write(commit, batch);
  // Nothing of a batch that did not fit is stored, so it may be tried again: in the reserve, and at
  // the start of the log once that is copied.
  if (!status && status.error().code == ErrorCode::kResourceExhausted) {
    headroom_.release_ballast();
    checkpoint();
    status = write(commit, batch);
  }
  if (!status) {
    is_broken_ = true;
    return std::unexpected(explain(std::move(status).error()));
  }
  mark_durable(commit, batch);
  if (is_log_too_long_for_disk()) checkpoint();
  return {};
}

void SqliteStore::mark_durable(const Commit& commit, const StoredBatch& batch) {
  mark_.last_seq = head_.last_seq;
  mark_.at = std::max(mark_.at, commit.events.back().at);
  mark_.batch_first = batch.first_seq;
  mark_.batch_checksum = batch.checksum;
  for (const model::EventRecord& record : commit.events) {
    mark_.last_job = std::max(mark_.last_job, last_job_of(record.event).value);
  }
  mark_writer_.write(mark_);
}

base::Status SqliteStore::write(const Commit& commit, const StoredBatch& batch) {
  Extents extents{head_, audit_, ledger_, gap_};
  const base::Status written = database_.transaction([&]() -> base::Status {
    TRY(write_rows(commit, batch, extents));
    TRY(write_ledger(commit, extents));
    return writer_.put_head(extents.head);
  });
  ledger_writer_.settle(written.has_value());
  TRY(written);
  head_ = extents.head;
  audit_ = extents.audit;
  ledger_ = extents.ledger;
  gap_ = extents.gap;
  return {};
}

base::Status SqliteStore::write_rows(const Commit& commit, const StoredBatch& batch,
                                     Extents& extents) {
  extents.head.last_seq = batch.last_seq();
  TRY(writer_.put_batch(batch));
  for (const auto& environment : commit.new_environments) {
    TRY(writer_.put_environment(environment));
  }
  TRY_ASSIGN(const std::size_t added, writer_.put_jobs(commit.ended_jobs, batch.last_seq()));
  extents.head.jobs += added;
  for (const auto& ref : commit.dropped_environments) TRY(writer_.drop_environment(ref));
  return audit_writer_.put(commit, extents.audit);
}

base::Status SqliteStore::write_ledger(const Commit& commit, Extents& extents) {
  if (!commit.has_no_lines) return ledger_writer_.put(commit, extents.ledger);
  // There is one gap: lines of events behind it go into it, too.
  if (gap_.is_open()) {
    TRY(ledger_writer_.drop_after(gap_.after));
    TRY_ASSIGN(extents.ledger, ledger_writer_.read_extent());
  }
  extents.gap = {gap_.is_open() ? gap_.after : last_seq(), model::EventSeq(extents.head.last_seq)};
  return ledger_writer_.put_gap(extents.gap);
}

base::Status SqliteStore::put_ledger(std::span<const LedgerBatch> batches, model::EventSeq upto) {
  if (is_broken_) return fail(ErrorCode::kUnavailable, "the store failed; recover first");
  TRY(check_fills(gap_, batches, upto));
  // The reserve is for endings.
  if (headroom_.assess() == Headroom::kReserved) {
    return fail(ErrorCode::kResourceExhausted, "the disk has no room for lines of the ledger");
  }
  const LedgerGap left{upto, gap_.last};
  LedgerExtent extent;
  const base::Status status = database_.transaction([&]() -> base::Status {
    for (const LedgerBatch& batch : batches) {
      TRY(ledger_writer_.put(batch.first.value, batch.lines));
    }
    TRY_ASSIGN(extent, ledger_writer_.read_extent());
    return ledger_writer_.put_gap(left);
  });
  ledger_writer_.settle(status.has_value());
  if (!status) {
    is_broken_ = status.error().code != ErrorCode::kResourceExhausted;
    return std::unexpected(explain(status.error()));
  }
  gap_ = left;
  ledger_ = extent;
  checkpoint_when_due();
  return {};
}

bool SqliteStore::is_log_too_long_for_disk() {
  return wal_pages_ >= kCheckpointPagesWhenLow && headroom_.assess() == Headroom::kReserved;
}

void SqliteStore::checkpoint_when_due() {
  if (wal_pages_ >= checkpoint_at_pages_ || is_log_too_long_for_disk()) checkpoint();
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
  if (!is_complete) return;
  note_copied();
  mark_writer_.write(mark_);
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
  const std::uint64_t all = head_.last_seq - after.value;
  base::Status status = replay_rows(after, [&](const model::EventRecord& record) {
    base::Status visited = visit(record);
    is_visitors_error = !visited;
    const std::uint64_t done = record.seq.value - after.value;
    const bool is_due = done % kEventsOfProgress == 0 || done == all;
    if (replay_progress_ && is_due) replay_progress_(done, all);
    return visited;
  });
  if (status || is_visitors_error) return status;
  return std::unexpected(explain(std::move(status).error()));
}

namespace {

// Batches that are read before their events are visited, and their bytes; more of each at most by
// one batch.
constexpr std::size_t kBatchesOfReplay = 64;
constexpr std::size_t kBytesOfReplay = std::size_t{1} << 20;

struct CopiedBatch {
  StoredBatch batch;  // its payload is not valid any more
  std::string payload;
};

// Those from the one that holds event `next` on; also after an error, those before it.
base::Status copy_batches(Statement& rows, std::uint64_t next, std::vector<CopiedBatch>& batches) {
  const StatementRun scope(rows);
  rows.bind(next);
  std::size_t bytes = 0;
  while (batches.size() < kBatchesOfReplay && bytes < kBytesOfReplay) {
    TRY_ASSIGN(const bool has_row, rows.step());
    if (!has_row) return {};
    const StoredBatch batch = batch_of_row(rows);
    batches.push_back({batch, std::string(batch.payload)});
    bytes += batch.payload.size();
  }
  return {};
}

}  // namespace

// No row is being read while events are visited: the visitor may write (put_ledger), and the log is
// copied meanwhile.
base::Status SqliteStore::replay_rows(
    model::EventSeq after,
    const std::function<base::Status(const model::EventRecord&)>& visit) const {
  TRY_ASSIGN(Statement rows, database_.prepare(fmt::format(
                                 "SELECT {} FROM journal WHERE first_seq >= (SELECT max(first_seq) "
                                 "FROM journal WHERE first_seq <= ?) ORDER BY first_seq",
                                 kBatchColumns)));
  const auto missing = [](std::uint64_t seq) {
    return fail(ErrorCode::kDataLoss,
                fmt::format("table journal: the record of event {} is missing", seq));
  };
  std::uint64_t next = after.value + 1;
  while (next <= head_.last_seq) {
    std::vector<CopiedBatch> batches;
    const base::Status read = copy_batches(rows, next, batches);
    for (const CopiedBatch& copied : batches) {
      if (next > head_.last_seq) break;
      StoredBatch batch = copied.batch;
      batch.payload = copied.payload;
      if (batch.first_seq > next || batch.last_seq() < next) return missing(next);
      TRY(visit_batch(batch, model::EventSeq(next - 1), visit));
      next = batch.last_seq() + 1;
    }
    TRY(read);
    if (batches.empty()) return missing(next);
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
  if (!query.ended_since.is_set() || !latest_.is_complete()) {
    TRY(list_from(query, {}, bytes, jobs));
    return jobs;
  }
  ArchiveQuery part = query;
  while (const auto range = latest_.below(part.before, query.ended_since)) {
    part.before = model::JobId(range->last.value + 1);
    part.limit = query.limit - jobs.size();
    TRY_ASSIGN(const bool is_full, list_from(part, range->first, bytes, jobs));
    if (is_full || jobs.size() == query.limit) break;
    part.before = range->first;
  }
  return jobs;
}

// Returns whether the jobs are as many bytes as the query wants.
base::Result<bool> SqliteStore::list_from(const ArchiveQuery& query, model::JobId from,
                                          std::size_t& bytes, std::vector<model::Job>& jobs) const {
  const ArchiveSql sql = archive_sql(query, from);
  TRY_ASSIGN(const ReaderPool::Lease reader, readers_.borrow());
  TRY_ASSIGN(Statement * rows, reader->statement(sql.text));
  const StatementRun scope(*rows);
  for (const auto& parameter : sql.parameters) {
    std::visit([&](const auto& value) { rows->bind(value); }, parameter);
  }
  while (true) {
    auto has_row = rows->step();
    if (!has_row) return std::unexpected(explain(std::move(has_row).error()));
    if (!*has_row) return false;
    auto job = job_of_row(*rows);
    if (!job) return std::unexpected(explain(std::move(job).error()));
    if (!matches(query, *job)) {
      return std::unexpected(damaged_store(
          files_, fmt::format("an index of table jobs gives job {} for another", job->id.value)));
    }
    jobs.push_back(*std::move(job));
    if (is_enough(query, jobs.back(), bytes)) return true;
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

base::Result<base::Instant> SqliteStore::begins_at() const {
  TRY_ASSIGN(const ReaderPool::Lease reader, readers_.borrow());
  TRY_ASSIGN(Statement * row,
             reader->statement("SELECT (SELECT min(at_ns) FROM audit INDEXED BY audit_by_time), "
                               "(SELECT min(ended_at_ns) FROM jobs INDEXED BY jobs_by_end)"));
  const StatementRun scope(*row);
  auto has_row = row->step();
  if (!has_row) return std::unexpected(explain(std::move(has_row).error()));
  base::Instant first;
  for (const int column : {0, 1}) {
    // Zero is no time: an empty table has none.
    const base::Instant at(row->integer(column));
    if (at.is_set() && (!first.is_set() || at < first)) first = at;
  }
  return first;
}

base::Status SqliteStore::visit(const LedgerQuery& query, const Visit& visit) const {
  const LedgerSql sql = ledger_sql(query);
  TRY_ASSIGN(const ReaderPool::Lease reader, readers_.borrow());
  TRY_ASSIGN(Statement name, reader->prepare(kLedgerNameSql));
  LedgerNames names(std::move(name));
  const NameOfNumber name_of = [&](std::uint64_t number) { return names.name_of(number); };
  TRY_ASSIGN(Statement * rows, reader->statement(sql.text));
  const StatementRun scope(*rows);
  for (const auto& parameter : sql.parameters) {
    std::visit([&](const auto& value) { rows->bind(value); }, parameter);
  }
  bool is_visitors_error = false;
  const Visit take = [&](const model::LedgerLine& line) -> base::Status {
    if (!is_wanted(query, line)) return {};
    base::Status visited = visit(line);
    is_visitors_error = !visited;
    return visited;
  };
  while (true) {
    auto has_row = rows->step();
    if (!has_row) return std::unexpected(explain(std::move(has_row).error()));
    if (!*has_row) return {};
    const auto row = ledger_row_of(*rows);
    if (!row) return std::unexpected(explain(row.error()));
    base::Status visited = visit_lines(*row, name_of, take);
    if (is_visitors_error) return visited;
    if (!visited) return std::unexpected(explain(std::move(visited).error()));
  }
}

base::Result<model::EventSeq> SqliteStore::ledger_upto() const {
  TRY_ASSIGN(const ReaderPool::Lease reader, readers_.borrow());
  TRY_ASSIGN(Statement * row,
             reader->statement("SELECT coalesce((SELECT after_seq FROM ledger_gap), "
                               "(SELECT last_seq FROM head))"));
  const StatementRun scope(*row);
  auto has_row = row->step();
  if (!has_row) return std::unexpected(explain(std::move(has_row).error()));
  return model::EventSeq(row->number(0));
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
