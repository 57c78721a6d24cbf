#include "store/sqlite/repair.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "store/audit_batch.h"
#include "store/batch.h"
#include "store/sqlite/data_dir.h"
#include "store/sqlite/found_rows.h"
#include "store/sqlite/inventory.h"
#include "store/sqlite/ledger_check.h"
#include "store/sqlite/ledger_table.h"
#include "store/sqlite/mark_check.h"
#include "store/sqlite/open_database.h"
#include "store/sqlite/records.h"
#include "store/sqlite/salvage.h"
#include "store/sqlite/schema.h"

namespace gpu_platform::store {

using base::ErrorCode;
using base::fail;

namespace {

// The distance by which ids jump where it is not known which ones were given.
constexpr std::uint64_t kIdsLeftOut = 1'000'000;

// `first`: what may help before a backup does; empty: nothing.
base::Error unreadable(const StoreFiles& files, const base::Error& cause,
                       std::string_view first = {}) {
  if (cause.code != ErrorCode::kDataLoss) return cause;
  return base::Error{ErrorCode::kDataLoss,
                     fmt::format("{} cannot be read as a store: {}. Nothing was changed. {}Put a "
                                 "backup in its place; to start with an empty store, use another "
                                 "data directory",
                                 files.database.string(), cause.message, first),
                     {}};
}

// Files that are removed again after the recovery, also if it fails.
class TemporaryFiles {
 public:
  explicit TemporaryFiles(std::filesystem::path path) : path_(std::move(path)) {}
  ~TemporaryFiles() {
    for (const char* suffix : {"", "-wal", "-shm"}) (void)remove_file(path_.string() + suffix);
  }
  TemporaryFiles(const TemporaryFiles&) = delete;
  TemporaryFiles& operator=(const TemporaryFiles&) = delete;

 private:
  std::filesystem::path path_;
};

// Adds to what SQLite gives what else lies in the files. `seen`: what it gives, or nothing.
base::Result<Inventory> look_further(const StoreFiles& files, const DirectoryLock& lock,
                                     const Inventory& seen, RowSource& source) {
  const auto overlaps = [&](std::uint64_t first, std::uint64_t last) {
    return std::ranges::any_of(
        seen.runs, [&](const EventRange& run) { return first <= run.last && run.first <= last; });
  };
  const KnownRows known{
      overlaps,
      [&](std::uint64_t upto) {
        return std::ranges::find(seen.snapshots, upto) != seen.snapshots.end();
      },
      [&](std::uint64_t id) { return std::ranges::binary_search(seen.jobs, id); },
      [&](std::uint64_t first_seq) { return seen.audit_kept.contains(first_seq); },
      [&](std::string_view ref) { return seen.environments.contains(ref); }};
  const bool had_database = source.database.has_value();
  source.database.reset();
  TRY_ASSIGN(source.found, find_rows(files, known));
  std::vector<std::string> damages;
  if (had_database) {
    TRY_ASSIGN(source.database, open_for_reading(files, lock, damages));
  }
  return take_inventory(source, files, std::move(damages));
}

// Copies rows in transactions of bounded size.
class Copier {
 public:
  static base::Result<Copier> create(const std::filesystem::path& path) {
    TRY(create_database(path, migrations()));
    Copier copier;
    TRY_ASSIGN(copier.database_, Database::open(path.string(), Database::Mode::kReadWrite));
    TRY(copier.database_.execute("PRAGMA synchronous = FULL"));
    TRY_ASSIGN(copier.writer_, RecordWriter::prepare(copier.database_));
    TRY_ASSIGN(copier.audit_, AuditWriter::prepare(copier.database_));
    TRY_ASSIGN(copier.ledger_, LedgerWriter::prepare(copier.database_));
    TRY(copier.database_.execute("BEGIN"));
    return copier;
  }

  base::Status copy(const std::function<base::Status(RecordWriter&)>& write) {
    TRY(write(writer_));
    return count_row();
  }
  base::Status copy(const AuditRow& row) {
    TRY(audit_.put(row));
    return count_row();
  }
  base::Status copy(const LedgerBatch& batch) {
    TRY(ledger_.put(batch.first.value, batch.lines));
    return count_row();
  }

  base::Status finish(const Head& head, const LedgerGap& gap) {
    TRY(writer_.put_head(head));
    TRY(ledger_.put_gap(gap));
    TRY(database_.execute("COMMIT"));
    return database_.execute("PRAGMA wal_checkpoint(TRUNCATE)");
  }

 private:
  base::Status count_row() {
    if (++rows_ % 10'000 != 0) return {};
    return database_.execute("COMMIT; BEGIN");
  }

  Database database_;
  RecordWriter writer_;
  AuditWriter audit_;
  LedgerWriter ledger_;
  std::uint64_t rows_ = 0;
};

// The audit trail: of events that are kept, what they say; of earlier ones, what the table has.
base::Status copy_audit(const RowSource& from, const Inventory& old, const EventRange& events,
                        Copier& to, StoreReport& kept) {
  if (!has_audit(old)) return {};
  const auto copy_row = [&](const Statement& row) -> base::Status {
    TRY_ASSIGN(const AuditRow found, audit_row_of(row));
    if (found.first_seq >= events.first) return {};
    kept.audit_entries += found.entries.size();
    return to.copy(found);
  };
  std::vector<std::string> known;
  return scan(from, kAudit, copy_row, known);
}

// Returns the event after which the lines of the ledger are made anew: none where the journal is
// there from its beginning, else that of the state which the daemon begins with.
std::uint64_t begin_of_lines(const Inventory& old, const EventRange& events) {
  std::uint64_t begin = 0;
  for (const std::uint64_t upto : old.snapshots) {
    const bool is_kept = upto + 1 >= events.first && upto <= events.last;
    if (events.first > 1 && is_kept) begin = std::max(begin, upto);
  }
  return begin;
}

// The lines up to that event, which the journal does not make any more.
base::Status copy_ledger(const RowSource& from, const Inventory& old, std::uint64_t upto,
                         Copier& to, StoreReport& kept) {
  if (!has_ledger(old) || upto == 0) return {};
  const NameOfNumber names = name_of(old);
  const auto copy_row = [&](const Statement& row) -> base::Status {
    TRY_ASSIGN(const LedgerRow found, ledger_row_of(row));
    if (found.first_seq > upto) return {};
    LedgerBatch batch{model::EventSeq(found.first_seq), {}};
    TRY(visit_lines(found, names, [&](const model::LedgerLine& line) {
      batch.lines.push_back(line);
      return base::Status{};
    }));
    kept.ledger_lines += batch.lines.size();
    return to.copy(batch);
  };
  std::vector<std::string> known;
  return scan(from, kLedger, copy_row, known);
}

// The last event that there was, as far as anything says so.
std::uint64_t last_stored(const Inventory& old) {
  std::uint64_t last = old.runs.empty() ? 0 : old.runs.back().last;
  if (old.head) last = std::max(last, old.head->last_seq);
  return old.mark ? std::max(last, old.mark->last_seq) : last;
}

bool is_past(const EventRange& events, const Inventory& old) {
  const bool is_unknown = !old.head && !old.mark;
  return is_unknown || old.is_outdated || last_stored(old) > events.last;
}

// What lies past the events that are kept; nothing where nothing can.
base::Result<std::optional<Salvage>> salvage(const RowSource& from, const Inventory& old,
                                             const EventRange& events, model::JobId seen) {
  if (!is_past(events, old)) return std::nullopt;
  Salvage found(events);
  const auto take_batch = [&](const Statement& row) -> base::Status {
    std::vector<model::EventRecord> records;
    TRY(visit_batch(batch_of_row(row), {}, [&](const model::EventRecord& record) -> base::Status {
      records.push_back(record);
      return {};
    }));
    found.add_batch(records);
    return {};
  };
  const auto take_trail = [&](const Statement& row) -> base::Status {
    TRY_ASSIGN(const AuditRow audit, audit_row_of(row));
    found.add_trail(audit.first_seq, audit.entries);
    return {};
  };
  const auto take_job = [&](const Statement& row) -> base::Status {
    TRY_ASSIGN(const model::Job job, job_of_row(row));
    found.add_job(job, archived_seq_of_row(row));
    return {};
  };
  std::vector<std::string> known;
  TRY(scan(from, kJournal, take_batch, known));
  if (has_audit(old)) TRY(scan(from, kAudit, take_trail, known));
  TRY(scan(from, kJobs, take_job, known));
  found.add_id(seen);
  if (old.mark) found.add_id(model::JobId(old.mark->last_job));
  const std::uint64_t last = last_stored(old);
  found.finish(last, old.is_audit_whole && old.head ? old.head->last_seq : 0);
  // A mark of the last event knows them all.
  const bool is_marked = old.mark && old.mark->last_seq == last && old.head;
  if (!is_marked && !found.knows_all_ids(last, old.is_audit_whole)) {
    found.leave_out_ids(kIdsLeftOut);
  }
  return found;
}

base::Status copy_salvage(const Salvage& found, Copier& to, StoreReport& kept) {
  for (const std::vector<model::EventRecord>& events : found.batches()) {
    const std::uint64_t first = events.front().seq.value;
    const std::string payload = encode_batch(events);
    const StoredBatch batch{first, events.size(), batch_checksum(first, events.size(), payload),
                            payload};
    TRY(to.copy([&](RecordWriter& writer) { return writer.put_batch(batch); }));
    const AuditRow audit{first, audit_entries_of(events)};
    if (audit.entries.empty()) continue;
    kept.audit_entries += audit.entries.size();
    TRY(to.copy(audit));
  }
  return {};
}

// Copies everything worth keeping, and counts it in `kept`. `last`: the last event of the new
// journal.
base::Status copy_rows(const RowSource& from, const Inventory& old, const EventRange& events,
                       std::uint64_t last, Copier& to, StoreReport& kept) {
  const std::uint64_t oldest_audited =
      old.audit_kept.empty() ? events.first : old.audit_kept.begin()->first;
  const auto copy_batch = [&](const Statement& row) -> base::Status {
    const StoredBatch batch = batch_of_row(row);
    if (batch.first_seq < events.first || batch.first_seq > events.last) return {};
    AuditRow audit{batch.first_seq, {}};
    TRY(visit_batch(batch, {}, [&](const model::EventRecord& record) -> base::Status {
      if (auto entry = model::audit_entry(record)) audit.entries.push_back(*std::move(entry));
      return {};
    }));
    if (!audit.entries.empty() && batch.first_seq >= oldest_audited) {
      kept.audit_entries += audit.entries.size();
      TRY(to.copy(audit));
    }
    return to.copy([&](RecordWriter& writer) { return writer.put_batch(batch); });
  };
  const auto copy_snapshot = [&](const Statement& row) -> base::Status {
    TRY_ASSIGN(const StoredSnapshot snapshot, snapshot_of_row(row));
    const std::uint64_t upto = snapshot.upto.value;
    if (upto + 1 < events.first || upto > events.last) return {};
    ++kept.snapshots;
    return to.copy([&](RecordWriter& writer) { return writer.put_snapshot(upto, snapshot.state); });
  };
  const auto copy_job = [&](const Statement& row) -> base::Status {
    TRY_ASSIGN(const model::Job job, job_of_row(row));
    const std::uint64_t archived_seq = std::min(archived_seq_of_row(row), last);
    ++kept.jobs;
    return to.copy([&](RecordWriter& writer) -> base::Status {
      auto put = writer.put_jobs({&job, 1}, archived_seq);
      return put ? base::Status{} : std::unexpected(std::move(put).error());
    });
  };
  const auto copy_environment = [&](const Statement& row) -> base::Status {
    TRY_ASSIGN(const Environment environment, environment_of_row(row));
    ++kept.environments;
    return to.copy([&](RecordWriter& writer) { return writer.put_environment(environment); });
  };
  std::vector<std::string> known;  // every damage is in the inventory already
  TRY(scan(from, kJournal, copy_batch, known));
  TRY(copy_audit(from, old, events, to, kept));
  TRY(scan(from, kSnapshots, copy_snapshot, known));
  TRY(scan(from, kJobs, copy_job, known));
  return scan(from, kEnvironments, copy_environment, known);
}

std::vector<std::string> describe_losses(const Inventory& old, const EventRange& events,
                                         const std::optional<Salvage>& found,
                                         const StoreReport& kept) {
  std::vector<std::string> lost;
  const std::uint64_t old_first = old.head ? old.head->first_seq : 1;
  if (events.first > old_first) {
    lost.push_back(fmt::format("events {} to {}; their outcome is in a snapshot", old_first,
                               events.first - 1));
  }
  if (!old.head && !old.mark) lost.push_back(fmt::format("any event after {}", last_stored(old)));
  if (found) {
    const base::Instant until = old.mark ? old.mark->at : base::Instant();
    std::ranges::move(found->losses(until), std::back_inserter(lost));
  }
  if (old.head && old.head->jobs > kept.jobs) {
    lost.push_back(fmt::format("{} of {} ended jobs", old.head->jobs - kept.jobs, old.head->jobs));
  }
  std::uint64_t audited = 0;
  for (const auto& [first_seq, entries] : old.audit_kept) audited += entries;
  if (audited > kept.audit_entries) {
    lost.push_back(
        fmt::format("{} of {} entries of the audit trail", audited - kept.audit_entries, audited));
  }
  if (!old.is_ledger_whole && events.first > 1) {
    lost.push_back(
        fmt::format("lines of the ledger of events up to {}: those that can be read are "
                    "kept",
                    begin_of_lines(old, events)));
  }
  return lost;
}

base::Result<std::optional<StoredSnapshot>> newest_snapshot_of(const Database& database) {
  TRY_ASSIGN(Statement snapshot,
             database.prepare(fmt::format("SELECT {} FROM snapshots ORDER BY upto DESC LIMIT 1",
                                          kSnapshotColumns)));
  TRY_ASSIGN(const bool has_snapshot, snapshot.step());
  if (!has_snapshot) return std::nullopt;
  return snapshot_of_row(snapshot);
}

// The snapshot and the events behind it; without one, all events. Refers to the database.
StateSource source_from(const Database& database, std::optional<StoredSnapshot> snapshot) {
  const model::EventSeq after = snapshot ? snapshot->upto : model::EventSeq();
  const auto replay = [&database, after](const StateSource::Visit& visit) -> base::Status {
    TRY_ASSIGN(Statement rows, database.prepare(fmt::format(
                                   "SELECT {} FROM journal ORDER BY first_seq", kBatchColumns)));
    while (true) {
      TRY_ASSIGN(const bool has_row, rows.step());
      if (!has_row) return {};
      const StoredBatch batch = batch_of_row(rows);
      if (batch.last_seq() > after.value) TRY(visit_batch(batch, after, visit));
    }
  };
  return {std::move(snapshot), replay};
}

// Names the environments that are not there, and tells the others that no job needs. A state that
// cannot be computed needs none.
base::Result<std::vector<std::string>> compare_environments(
    const Database& database, const std::set<std::string, std::less<>>& there,
    const NeededEnvironments& needed, std::vector<std::string>& unneeded) {
  std::vector<std::string> missing;
  if (!needed) return missing;
  auto snapshot = newest_snapshot_of(database);
  if (!snapshot) return missing;
  const auto wanted = needed(source_from(database, *std::move(snapshot)));
  if (!wanted) return missing;
  for (const auto& [ref, job] : *wanted) {
    if (!there.contains(ref))
      missing.push_back(fmt::format("the environment of job {}", job.value));
  }
  for (const std::string& ref : there) {
    if (!wanted->contains(ref)) unneeded.push_back(ref);
  }
  return missing;
}

// Of a store that is sound: adds what is wrong in its ledger to the damages.
base::Status check_ledger(const Database& database, Inventory& inventory,
                          const EventMeaning& meaning) {
  if (!meaning.lines || !has_ledger(inventory) || !inventory.head) return {};
  std::optional<StoredSnapshot> snapshot;
  if (inventory.head->first_seq > 1) {
    TRY_ASSIGN(snapshot, newest_snapshot_of(database));
  }
  std::vector<std::string>& damages = inventory.report.damages;
  const StateSource from = source_from(database, std::move(snapshot));
  TRY(compare_ledger(database, inventory, from, meaning.lines, damages));
  if (damages.empty() && meaning.books) {
    TRY(add_up_ledger(database, inventory, from, meaning.books, damages));
  }
  inventory.is_ledger_whole = damages.empty();
  return {};
}

// Of the new database: forgets the environments that no job needs, which an older page may have
// had, and returns those that are missing.
base::Result<std::vector<std::string>> settle_environments(
    const std::filesystem::path& path, const std::set<std::string, std::less<>>& there,
    const NeededEnvironments& needed, std::uint64_t& kept) {
  TRY_ASSIGN(const Database database, Database::open(path.string(), Database::Mode::kReadWrite));
  std::vector<std::string> unneeded;
  TRY_ASSIGN(std::vector<std::string> missing,
             compare_environments(database, there, needed, unneeded));
  TRY(database.execute("PRAGMA secure_delete = ON"));
  TRY_ASSIGN(RecordWriter writer, RecordWriter::prepare(database));
  const base::Status dropped = database.transaction([&]() -> base::Status {
    for (const std::string& ref : unneeded) TRY(writer.drop_environment(ref));
    return {};
  });
  TRY(dropped);
  kept -= unneeded.size();
  TRY(database.execute("PRAGMA wal_checkpoint(TRUNCATE)"));
  return missing;
}

base::Status mark_recovered(const StoreFiles& files, model::JobId last_job) {
  TRY_ASSIGN(const Database database,
             Database::open(files.recovered.string(), Database::Mode::kWithoutLog));
  TRY_ASSIGN(const Head head, read_head(database));
  TRY_ASSIGN(Mark mark, mark_of(database, head));
  mark.last_job = std::max(mark.last_job, last_job.value);
  return make_marker(files.marker, mark);
}

// Makes of a complete store.db.recovered a store in order. Every step may be repeated. `last_job`:
// the highest id that may have been given.
base::Result<std::filesystem::path> swap_in(const StoreFiles& files, DirectoryLock& lock,
                                            model::JobId last_job) {
  const auto name = [&](int number) {
    return files.dir / fmt::format("store.db.damaged-{}", number);
  };
  int number = 1;
  while (file_exists(name(number))) ++number;
  // A swap that was cut off has moved the database already.
  if (!file_exists(files.database) && number > 1) --number;
  const std::filesystem::path aside = name(number);
  // The log first: were the database moved alone, its log would be taken for the new one's.
  if (file_exists(files.wal)) TRY(rename_file(files.wal, aside.string() + "-wal"));
  if (file_exists(files.database)) TRY(rename_file(files.database, aside));
  TRY(remove_file(files.shared_memory));
  TRY(sync_directory(files.dir));
  // Before the new database is there: a mark of the former one would have it refused.
  TRY(mark_recovered(files, last_job));
  TRY(rename_file(files.recovered, files.database));
  TRY(sync_directory(files.dir));
  TRY(lock.note_closed());
  return aside;
}

}  // namespace

EventRange choose_events(const std::vector<EventRange>& runs,
                         const std::vector<std::uint64_t>& snapshots) {
  std::vector<std::uint64_t> bases = snapshots;
  bases.push_back(0);
  std::optional<EventRange> best;
  for (const std::uint64_t base : bases) {
    // The run that goes on from this state, with what it holds of the time before.
    EventRange range{base + 1, base};
    for (const auto& run : runs) {
      if (run.first <= base + 1 && base <= run.last) range = run;
    }
    if (!best || range.last > best->last ||
        (range.last == best->last && range.first < best->first)) {
      best = range;
    }
  }
  return *best;
}

base::Result<StoreReport> check_store(const std::filesystem::path& data_dir,
                                      const EventMeaning& meaning, const StoreProgress& progress) {
  const StoreFiles files(data_dir);
  if (!file_exists(files.dir)) {
    return fail(ErrorCode::kNotFound, fmt::format("there is no store in {}", data_dir.string()));
  }
  TRY_ASSIGN(const DirectoryLock lock, DirectoryLock::acquire(files));
  RowSource source;
  source.progress = progress;
  auto inventory = inspect(files, lock, source);
  if (!inventory) {
    return std::unexpected(unreadable(
        files, inventory.error(),
        fmt::format("`gpu-platform store recover --data-dir {}` takes the records that verify out "
                    "of its pages. If it finds none: ",
                    files.dir.string())));
  }
  if (inventory->report.is_sound()) {
    std::vector<std::string> unneeded;
    TRY_ASSIGN(inventory->report.missing,
               compare_environments(*source.database, inventory->environments, meaning.environments,
                                    unneeded));
    if (progress) progress("ledger", 0);
    TRY(check_ledger(*source.database, *inventory, meaning));
  }
  inventory->report.has_mark = inventory->mark.has_value();
  return std::move(inventory->report);
}

namespace {

base::Result<RecoveryReport> complete_recovery(const StoreFiles& files, DirectoryLock& lock) {
  RecoveryReport report;
  const auto mark = read_mark(files.marker);
  TRY_ASSIGN(report.put_aside, swap_in(files, lock, model::JobId(mark ? mark->last_job : 0)));
  report.lost.emplace_back("what the interrupted recovery could not read");
  RowSource source;
  TRY_ASSIGN(Inventory inventory, inspect(files, lock, source));
  report.kept = std::move(inventory.report);
  return report;
}

// Everything that can still be read of a store that is not sound.
base::Result<Inventory> take_all(const StoreFiles& files, const DirectoryLock& lock,
                                 const EventMeaning& meaning, RowSource& source) {
  auto seen = inspect(files, lock, source);
  if (!seen && seen.error().code != ErrorCode::kDataLoss) {
    return std::unexpected(std::move(seen).error());
  }
  if (seen && seen->report.is_sound()) TRY(check_ledger(*source.database, *seen, meaning));
  if (seen && seen->report.is_sound()) {
    return fail(ErrorCode::kFailedPrecondition,
                fmt::format("{} is not damaged", files.database.string()));
  }
  if (!seen) source.database.reset();
  auto all = look_further(files, lock, seen ? *seen : Inventory(), source);
  // What SQLite could read at first it may not any more, where a disk fails.
  if (!all) return std::unexpected(unreadable(files, all.error()));
  const bool has_nothing = all->runs.empty() && all->snapshots.empty() && all->report.jobs == 0;
  const bool was_empty = seen && seen->head && seen->head->last_seq == 0;
  if (has_nothing && !was_empty) {
    const base::Error none{ErrorCode::kDataLoss, "no event and no job can be read", {}};
    return std::unexpected(unreadable(files, seen ? none : seen.error()));
  }
  return all;
}

}  // namespace

base::Result<RecoveryReport> recover_store(const std::filesystem::path& data_dir,
                                           const RecoveryOptions& options) {
  const StoreFiles files(data_dir);
  if (!file_exists(files.dir)) {
    return fail(ErrorCode::kNotFound, fmt::format("there is no store in {}", data_dir.string()));
  }
  TRY_ASSIGN(DirectoryLock lock, DirectoryLock::acquire(files));
  if (file_exists(files.recovered)) return complete_recovery(files, lock);
  const TemporaryFiles found_file(files.found);
  RowSource source;
  source.progress = options.progress;
  TRY_ASSIGN(const Inventory old, take_all(files, lock, options.meaning, source));
  RecoveryReport report;
  const EventRange events = choose_events(old.runs, old.snapshots);
  TRY_ASSIGN(const std::optional<Salvage> found, salvage(source, old, events, options.seen_job));
  const std::uint64_t last = found ? found->last_event() : events.last;
  {
    TRY_ASSIGN(Copier copier, Copier::create(files.recovering));
    if (found) TRY(copy_salvage(*found, copier, report.kept));
    TRY(copy_rows(source, old, events, last, copier, report.kept));
    const std::uint64_t begin = begin_of_lines(old, events);
    TRY(copy_ledger(source, old, begin, copier, report.kept));
    const LedgerGap gap{model::EventSeq(begin), model::EventSeq(last)};
    report.is_ledger_due = gap.is_open();
    TRY(copier.finish({events.first, last, report.kept.jobs}, gap));
  }
  source = {};
  TRY_ASSIGN(std::vector<std::string> missing,
             settle_environments(files.recovering, old.environments, options.meaning.environments,
                                 report.kept.environments));
  if (found) report.next_job = model::JobId(found->next_job_id());
  TRY(rename_file(files.recovering, files.recovered));
  TRY(sync_directory(files.dir));
  const std::uint64_t marked = old.mark ? old.mark->last_job : 0;
  TRY_ASSIGN(report.put_aside,
             swap_in(files, lock,
                     model::JobId(std::max(
                         marked, report.next_job.value == 0 ? 0 : report.next_job.value - 1))));
  report.kept.file = files.database;
  report.kept.schema_version = migrations().back().version;
  if (last >= events.first) {
    report.kept.first_event = model::EventSeq(events.first);
    report.kept.last_event = model::EventSeq(last);
  }
  report.lost = describe_losses(old, events, found, report.kept);
  std::ranges::move(missing, std::back_inserter(report.lost));
  return report;
}

}  // namespace gpu_platform::store
