#include "store/sqlite/repair.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "store/audit_batch.h"
#include "store/batch.h"
#include "store/sqlite/audit_table.h"
#include "store/sqlite/data_dir.h"
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

using Key = std::variant<std::uint64_t, std::string>;

struct Table {
  std::string_view name;
  std::string_view key;  // its first column
  std::string_view columns;
  bool has_text_key = false;
};
constexpr Table kJournal{"journal", "first_seq", kBatchColumns};
constexpr Table kSnapshots{"snapshots", "upto", kSnapshotColumns};
constexpr Table kJobs{"jobs", "id", kJobColumns};
constexpr Table kAudit{"audit", "first_seq", kAuditColumns};
constexpr Table kEnvironments{"environments", "ref", kEnvironmentColumns, true};

using Visit = std::function<base::Status(const Statement& row)>;

// Rows in key order up to the first page that cannot be read, then from the other end down to
// there. kDataLoss from visit and from SQLite are noted in `damages`; other errors end the scan.
base::Status scan_one_way(const Database& database, const Table& table, bool downwards,
                          std::optional<Key>& last, const Visit& visit,
                          std::vector<std::string>& damages, bool& reached_end) {
  reached_end = false;
  const auto tolerate = [&](base::Error error) -> base::Status {
    if (error.code != ErrorCode::kDataLoss) return std::unexpected(std::move(error));
    damages.push_back(std::move(error.message));
    return {};
  };
  auto rows = database.prepare(
      fmt::format("SELECT {} FROM {} NOT INDEXED{} ORDER BY {}{}", table.columns, table.name,
                  downwards && last ? fmt::format(" WHERE {} > ?", table.key) : "", table.key,
                  downwards ? " DESC" : ""));
  if (!rows) return tolerate(std::move(rows).error());
  if (downwards && last) std::visit([&](const auto& key) { rows->bind(key); }, *last);
  while (true) {
    auto has_row = rows->step();
    if (!has_row) return tolerate(std::move(has_row).error());
    reached_end = !*has_row;
    if (reached_end) return {};
    if (!downwards) {
      last = table.has_text_key ? Key(std::string(rows->text(0))) : Key(rows->number(0));
    }
    if (auto status = visit(*rows); !status) TRY(tolerate(std::move(status).error()));
  }
}

base::Status scan(const Database& database, const Table& table, const Visit& visit,
                  std::vector<std::string>& damages) {
  std::optional<Key> last;
  bool reached_end = false;
  TRY(scan_one_way(database, table, false, last, visit, damages, reached_end));
  if (reached_end) return {};
  const std::size_t known = damages.size();
  TRY(scan_one_way(database, table, true, last, visit, damages, reached_end));
  // The same page met from the other side is no second damage.
  if (!reached_end && damages.size() > known) damages.pop_back();
  return {};
}

// Entries of the audit trail, counted by the first event of their batch.
using EntryCounts = std::map<std::uint64_t, std::uint64_t>;

// What the database holds that verifies.
struct Inventory {
  std::vector<EventRange> runs;
  EntryCounts audit_made;  // by the journal's events
  EntryCounts audit_kept;  // in the table
  bool is_audit_whole = true;
  std::vector<std::uint64_t> snapshots;
  std::optional<Head> head;
  StoreReport report;
};

std::vector<EventRange> join(std::vector<EventRange> batches) {
  std::ranges::sort(batches, {}, &EventRange::first);
  std::vector<EventRange> runs;
  for (const auto& batch : batches) {
    if (!runs.empty() && runs.back().last + 1 == batch.first) {
      runs.back().last = batch.last;
    } else {
      runs.push_back(batch);
    }
  }
  return runs;
}

base::Status take_journal(const Database& database, Inventory& inventory) {
  std::vector<EventRange> batches;
  const auto take = [&](const Statement& row) -> base::Status {
    const StoredBatch batch = batch_of_row(row);
    std::uint64_t entries = 0;
    TRY(visit_batch(batch, {}, [&](const model::EventRecord& record) -> base::Status {
      entries += model::has_audit_entry(record.event) ? 1 : 0;
      return {};
    }));
    if (entries != 0) inventory.audit_made[batch.first_seq] = entries;
    batches.push_back({batch.first_seq, batch.last_seq()});
    return {};
  };
  TRY(scan(database, kJournal, take, inventory.report.damages));
  inventory.runs = join(std::move(batches));
  return {};
}

base::Status take_others(const Database& database, Inventory& inventory) {
  StoreReport& report = inventory.report;
  const auto take_snapshot = [&](const Statement& row) -> base::Status {
    TRY_ASSIGN(const StoredSnapshot snapshot, snapshot_of_row(row));
    inventory.snapshots.push_back(snapshot.upto.value);
    ++report.snapshots;
    return {};
  };
  const auto take_job = [&](const Statement& row) -> base::Status {
    TRY(job_of_row(row));
    ++report.jobs;
    return {};
  };
  const auto take_environment = [&](const Statement& row) -> base::Status {
    TRY(environment_of_row(row));
    ++report.environments;
    return {};
  };
  TRY(scan(database, kSnapshots, take_snapshot, report.damages));
  TRY(scan(database, kJobs, take_job, report.damages));
  return scan(database, kEnvironments, take_environment, report.damages);
}

// What the head row promises against what was found.
base::Status compare_with_head(const Database& database, Inventory& inventory) {
  StoreReport& report = inventory.report;
  auto head = read_head(database);
  if (!head) {
    if (head.error().code != ErrorCode::kDataLoss) return std::unexpected(head.error());
    report.damages.push_back(std::move(head).error().message);
    return {};
  }
  inventory.head = *head;
  std::uint64_t next = head->first_seq;
  for (const auto& run : inventory.runs) {
    if (run.first != next) {
      report.damages.push_back(
          fmt::format("table journal: events {} to {} are not there", next, run.first - 1));
    }
    next = run.last + 1;
  }
  if (next != head->last_seq + 1) {
    report.damages.push_back(
        fmt::format("table journal: events {} to {} are not there", next, head->last_seq));
  }
  if (report.jobs != head->jobs) {
    report.damages.push_back(
        fmt::format("table jobs: {} of {} records are intact", report.jobs, head->jobs));
  }
  return {};
}

// Databases of the first version have no such table.
bool has_audit(const Inventory& inventory) {
  return inventory.report.schema_version >= 2;
}

base::Status take_audit(const Database& database, Inventory& inventory) {
  if (!has_audit(inventory)) return {};
  const auto take = [&](const Statement& row) -> base::Status {
    TRY_ASSIGN(const AuditRow found, audit_row_of(row));
    inventory.audit_kept[found.first_seq] = found.entries.size();
    inventory.report.audit_entries += found.entries.size();
    return {};
  };
  const std::size_t known = inventory.report.damages.size();
  TRY(scan(database, kAudit, take, inventory.report.damages));
  inventory.is_audit_whole = inventory.report.damages.size() == known;
  return {};
}

// The oldest part of the trail goes in time; from there on it is what the events say.
void compare_audit(Inventory& inventory) {
  if (!has_audit(inventory) || inventory.audit_kept.empty()) return;
  const std::uint64_t oldest = inventory.audit_kept.begin()->first;
  for (auto made = inventory.audit_made.lower_bound(oldest); made != inventory.audit_made.end();
       ++made) {
    const auto kept = inventory.audit_kept.find(made->first);
    if (kept != inventory.audit_kept.end() && kept->second == made->second) continue;
    inventory.report.damages.push_back(fmt::format(
        "table audit: the entries of the batch of event {} are not there", made->first));
  }
}

base::Status check_structure(const Database& database, std::vector<std::string>& damages) {
  TRY_ASSIGN(Statement rows, database.prepare("PRAGMA integrity_check(20)"));
  while (true) {
    auto has_row = rows.step();
    if (!has_row && has_row.error().code == ErrorCode::kDataLoss) {
      damages.push_back(std::move(has_row).error().message);
      return {};
    }
    TRY(has_row);
    if (!*has_row) return {};
    if (rows.text(0) != "ok") damages.push_back(fmt::format("structure: {}", rows.text(0)));
  }
}

base::Result<Database> open_for_reading(const StoreFiles& files, const DirectoryLock& lock,
                                        std::vector<std::string>& damages) {
  if (auto status = check_files(files, lock); !status) {
    if (status.error().code != ErrorCode::kDataLoss) return std::unexpected(status.error());
    damages.push_back(std::move(status).error().message);
  }
  TRY_ASSIGN(Database database, Database::open(files.database.string(), Database::Mode::kKeepLog));
  // Makes SQLite read a file that is shorter than its header says.
  sqlite3_db_config(database.handle(), SQLITE_DBCONFIG_DEFENSIVE, 0, nullptr);
  TRY(database.execute("PRAGMA writable_schema = ON"));
  TRY(database.execute("PRAGMA cell_size_check = ON"));
  TRY(check_schema(database, migrations()));
  return database;
}

base::Result<Inventory> take_inventory(const Database& database, const StoreFiles& files,
                                       std::vector<std::string> damages) {
  Inventory inventory;
  inventory.report.file = files.database;
  inventory.report.damages = std::move(damages);
  TRY_ASSIGN(inventory.report.schema_version, database.query_integer("PRAGMA user_version"));
  TRY(take_journal(database, inventory));
  TRY(take_others(database, inventory));
  TRY(take_audit(database, inventory));
  compare_audit(inventory);
  TRY(compare_with_head(database, inventory));
  TRY(check_structure(database, inventory.report.damages));
  if (!inventory.runs.empty()) {
    inventory.report.first_event = model::EventSeq(inventory.runs.front().first);
    inventory.report.last_event = model::EventSeq(inventory.runs.back().last);
  }
  return inventory;
}

base::Error unreadable(const StoreFiles& files, const base::Error& cause) {
  if (cause.code != ErrorCode::kDataLoss) return cause;
  return base::Error{ErrorCode::kDataLoss,
                     fmt::format("{} cannot be read as a store: {}. Nothing was changed. Put a "
                                 "backup in its place; to start with an empty store, use another "
                                 "data directory",
                                 files.database.string(), cause.message),
                     {}};
}

base::Result<Inventory> inspect(const StoreFiles& files, const DirectoryLock& lock,
                                std::optional<Database>& database) {
  if (!file_exists(files.database)) {
    return fail(ErrorCode::kNotFound, fmt::format("there is no store in {}", files.dir.string()));
  }
  std::vector<std::string> damages;
  auto opened = open_for_reading(files, lock, damages);
  if (!opened) return std::unexpected(unreadable(files, opened.error()));
  database = *std::move(opened);
  return take_inventory(*database, files, std::move(damages));
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

  base::Status finish(const Head& head) {
    TRY(writer_.put_head(head));
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
  std::uint64_t rows_ = 0;
};

// The audit trail: of events that are kept, what they say; of earlier ones, what the table has.
base::Status copy_audit(const Database& from, const Inventory& old, const EventRange& events,
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

bool is_past(const EventRange& events, const Inventory& old) {
  const std::uint64_t last = old.runs.empty() ? events.last : old.runs.back().last;
  return !old.head || old.head->last_seq > events.last || last > events.last;
}

// What lies past the events that are kept; nothing where nothing can.
base::Result<std::optional<Salvage>> salvage(const Database& from, const Inventory& old,
                                             const EventRange& events) {
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
  const std::uint64_t last_intact = old.runs.empty() ? 0 : old.runs.back().last;
  const std::uint64_t last = old.head ? std::max(old.head->last_seq, last_intact) : last_intact;
  if (!found.knows_all_ids(last, old.is_audit_whole)) found.leave_out_ids(kIdsLeftOut);
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
base::Status copy_rows(const Database& from, const Inventory& old, const EventRange& events,
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
  if (old.head && old.head->last_seq > events.last) {
    lost.push_back(fmt::format("events {} to {}: the state is that after event {}", events.last + 1,
                               old.head->last_seq, events.last));
  } else if (!old.head) {
    lost.push_back(fmt::format("any event after {}", events.last));
  }
  if (old.head && old.head->jobs > kept.jobs) {
    lost.push_back(fmt::format("{} of {} ended jobs", old.head->jobs - kept.jobs, old.head->jobs));
  }
  if (const std::string jobs = found ? found->lost_jobs() : ""; !jobs.empty()) {
    lost.push_back(
        fmt::format("jobs {}, which were submitted after event {} and are not known to have ended: "
                    "their users must submit them again",
                    jobs, events.last));
  }
  std::uint64_t audited = 0;
  for (const auto& [first_seq, entries] : old.audit_kept) audited += entries;
  if (audited > kept.audit_entries) {
    lost.push_back(
        fmt::format("{} of {} entries of the audit trail", audited - kept.audit_entries, audited));
  }
  if (lost.empty()) lost.emplace_back("no event and no ended job");
  return lost;
}

// Makes of a complete store.db.recovered a store in order. Every step may be repeated.
base::Result<std::filesystem::path> swap_in(const StoreFiles& files, DirectoryLock& lock) {
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

base::Result<StoreReport> check_store(const std::filesystem::path& data_dir) {
  const StoreFiles files(data_dir);
  if (!file_exists(files.dir)) {
    return fail(ErrorCode::kNotFound, fmt::format("there is no store in {}", data_dir.string()));
  }
  TRY_ASSIGN(const DirectoryLock lock, DirectoryLock::acquire(files));
  std::optional<Database> database;
  TRY_ASSIGN(Inventory inventory, inspect(files, lock, database));
  return std::move(inventory.report);
}

base::Result<RecoveryReport> recover_store(const std::filesystem::path& data_dir) {
  const StoreFiles files(data_dir);
  if (!file_exists(files.dir)) {
    return fail(ErrorCode::kNotFound, fmt::format("there is no store in {}", data_dir.string()));
  }
  TRY_ASSIGN(DirectoryLock lock, DirectoryLock::acquire(files));
  RecoveryReport report;
  if (file_exists(files.recovered)) {
    TRY_ASSIGN(report.put_aside, swap_in(files, lock));
    report.lost.emplace_back("what the interrupted recovery could not read");
    std::optional<Database> database;
    TRY_ASSIGN(Inventory inventory, inspect(files, lock, database));
    report.kept = std::move(inventory.report);
    return report;
  }
  std::optional<Database> database;
  TRY_ASSIGN(const Inventory old, inspect(files, lock, database));
  if (old.report.is_sound()) {
    return fail(ErrorCode::kFailedPrecondition,
                fmt::format("{} is not damaged", files.database.string()));
  }
  const EventRange events = choose_events(old.runs, old.snapshots);
  if (events.last == 0 && old.report.jobs == 0) {
    return std::unexpected(unreadable(
        files, base::Error{ErrorCode::kDataLoss, "no event and no job can be read", {}}));
  }
  TRY_ASSIGN(const std::optional<Salvage> found, salvage(*database, old, events));
  const std::uint64_t last = found ? found->last_event() : events.last;
  {
    TRY_ASSIGN(Copier copier, Copier::create(files.recovering));
    if (found) TRY(copy_salvage(*found, copier, report.kept));
    TRY(copy_rows(*database, old, events, last, copier, report.kept));
    TRY(copier.finish({events.first, last, report.kept.jobs}));
  }
  database.reset();
  TRY(rename_file(files.recovering, files.recovered));
  TRY(sync_directory(files.dir));
  TRY_ASSIGN(report.put_aside, swap_in(files, lock));
  report.kept.file = files.database;
  report.kept.schema_version = migrations().back().version;
  if (last >= events.first) {
    report.kept.first_event = model::EventSeq(events.first);
    report.kept.last_event = model::EventSeq(last);
  }
  report.lost = describe_losses(old, events, found, report.kept);
  if (found) report.next_job = model::JobId(found->next_job_id());
  return report;
}

}  // namespace gpu_platform::store
