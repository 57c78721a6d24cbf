#include "store/sqlite/inventory.h"

#include <algorithm>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "store/batch.h"
#include "store/sqlite/mark_check.h"
#include "store/sqlite/open_database.h"
#include "store/sqlite/schema.h"

namespace gpu_platform::store {

using base::ErrorCode;
using base::fail;

namespace {

// Rows between two reports.
constexpr std::uint64_t kRowsOfProgress = 64;

using Key = std::variant<std::uint64_t, std::string>;

// Rows in key order up to the first page that cannot be read, then from the other end down to
// there. kDataLoss from visit and from SQLite are noted in `damages`; other errors end the scan.
base::Status scan_one_way(const Database& database, const StoredTable& table, bool downwards,
                          std::optional<Key>& last, const VisitRow& visit,
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

base::Status scan_database(const Database& database, const StoredTable& table,
                           const VisitRow& visit, std::vector<std::string>& damages) {
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

}  // namespace

base::Status scan(const RowSource& source, const StoredTable& table, const VisitRow& visit,
                  std::vector<std::string>& damages) {
  std::uint64_t rows = 0;
  const VisitRow counted = [&](const Statement& row) -> base::Status {
    if (source.progress && ++rows % kRowsOfProgress == 0) source.progress(table.name, rows);
    return visit(row);
  };
  if (source.database) TRY(scan_database(*source.database, table, counted, damages));
  if (source.found) TRY(scan_database(source.found->database, table, counted, damages));
  return {};
}

namespace {

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

base::Status take_journal(const RowSource& source, Inventory& inventory) {
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
  TRY(scan(source, kJournal, take, inventory.report.damages));
  inventory.runs = join(std::move(batches));
  return {};
}

base::Status take_others(const RowSource& source, Inventory& inventory) {
  StoreReport& report = inventory.report;
  const auto take_snapshot = [&](const Statement& row) -> base::Status {
    TRY_ASSIGN(const StoredSnapshot snapshot, snapshot_of_row(row));
    inventory.snapshots.push_back(snapshot.upto.value);
    ++report.snapshots;
    return {};
  };
  const auto take_job = [&](const Statement& row) -> base::Status {
    TRY_ASSIGN(const model::Job job, job_of_row(row));
    inventory.jobs.push_back(job.id.value);
    ++report.jobs;
    return {};
  };
  const auto take_environment = [&](const Statement& row) -> base::Status {
    TRY_ASSIGN(Environment environment, environment_of_row(row));
    inventory.environments.insert(std::move(environment.ref));
    ++report.environments;
    return {};
  };
  TRY(scan(source, kSnapshots, take_snapshot, report.damages));
  TRY(scan(source, kJobs, take_job, report.damages));
  std::ranges::sort(inventory.jobs);
  return scan(source, kEnvironments, take_environment, report.damages);
}

// What the head row promises against what was found.
base::Status compare_with_head(const RowSource& source, Inventory& inventory) {
  StoreReport& report = inventory.report;
  if (source.found) inventory.head = source.found->head;
  if (source.database) {
    auto head = read_head(*source.database);
    if (!head && head.error().code != ErrorCode::kDataLoss) return std::unexpected(head.error());
    if (!head) report.damages.push_back(head.error().message);
    const bool is_newer = head && (!inventory.head || head->last_seq >= inventory.head->last_seq);
    if (is_newer) inventory.head = *head;
  }
  const auto& head = inventory.head;
  if (!head) return {};
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

// A database that is sound in itself may be an older one.
base::Status compare_with_mark(const Database& database, Inventory& inventory) {
  if (!inventory.mark || !inventory.head) return {};
  auto missing = what_is_missing(database, *inventory.head, *inventory.mark);
  if (!missing && missing.error().code != ErrorCode::kDataLoss) {
    return std::unexpected(std::move(missing).error());
  }
  std::string text = missing ? *missing : missing.error().message;
  inventory.is_outdated = !text.empty();
  if (inventory.is_outdated) inventory.report.damages.push_back(std::move(text));
  return {};
}
base::Status take_audit(const RowSource& source, Inventory& inventory) {
  if (!has_audit(inventory)) return {};
  const auto take = [&](const Statement& row) -> base::Status {
    TRY_ASSIGN(const AuditRow found, audit_row_of(row));
    inventory.audit_kept[found.first_seq] = found.entries.size();
    inventory.report.audit_entries += found.entries.size();
    return {};
  };
  const std::size_t known = inventory.report.damages.size();
  TRY(scan(source, kAudit, take, inventory.report.damages));
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

base::Status take_ledger(const RowSource& source, Inventory& inventory) {
  if (!has_ledger(inventory)) return {};
  std::uint64_t keys = 0;
  const auto take_name = [&](const Statement& row) -> base::Status {
    TRY_ASSIGN(LedgerName name, ledger_name_of(row));
    inventory.names.emplace(name.number, std::move(name.text));
    return {};
  };
  const NameOfNumber names = name_of(inventory);
  const auto take = [&](const Statement& row) -> base::Status {
    TRY_ASSIGN(const LedgerRow found, ledger_row_of(row));
    std::set<std::string, std::less<>> users;
    TRY(visit_lines(found, names, [&](const model::LedgerLine& line) -> base::Status {
      if (line.kind != model::LedgerKind::kRest && !line.user.empty()) users.insert(line.user);
      return {};
    }));
    keys += users.size();
    inventory.report.ledger_lines += found.count;
    return {};
  };
  std::vector<std::string>& damages = inventory.report.damages;
  const std::size_t known = damages.size();
  TRY(scan(source, kLedgerNames, take_name, damages));
  TRY(scan(source, kLedger, take, damages));
  if (source.database) {
    const auto said = source.database->query_integer("SELECT count(*) FROM ledger_users");
    if (!said || static_cast<std::uint64_t>(*said) != keys) {
      damages.push_back(
          fmt::format("table ledger_users: it has not the {} keys that the intact "
                      "records of table ledger have",
                      keys));
    }
    const auto gap = ledger_gap_of(*source.database);
    if (!gap) damages.push_back(gap.error().message);
    if (gap) inventory.ledger_gap = *gap;
  }
  inventory.is_ledger_whole = damages.size() == known;
  return {};
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

// SQLite leaves out a table whose place in the file it does not believe, and says nothing.
base::Status check_tables(const Database& database, std::int64_t version) {
  for (const StoredTable& table :
       {kJournal, kSnapshots, kJobs, kEnvironments, kAudit, kLedger, kLedgerNames}) {
    if (version < 2 && table.name == kAudit.name) continue;
    if (version < 4 && table.name.starts_with(kLedger.name)) continue;
    if (database.prepare(fmt::format("SELECT {} FROM {}", table.columns, table.name))) continue;
    return fail(ErrorCode::kDataLoss, fmt::format("table {} cannot be found", table.name));
  }
  return {};
}

}  // namespace

NameOfNumber name_of(const Inventory& inventory) {
  return [&names = inventory.names](std::uint64_t number) -> base::Result<std::string_view> {
    const auto name = names.find(number);
    if (name != names.end()) return std::string_view(name->second);
    return fail(ErrorCode::kDataLoss,
                fmt::format("table ledger_names: record {} is missing", number));
  };
}

base::Result<Database> open_for_reading(const StoreFiles& files, const DirectoryLock& lock,
                                        std::vector<std::string>& damages) {
  if (auto status = check_files(files, lock, read_mark(files.marker)); !status) {
    if (status.error().code != ErrorCode::kDataLoss) return std::unexpected(status.error());
    damages.push_back(std::move(status).error().message);
  }
  // If there is no log, none is made: its absence may be the damage.
  const auto mode = file_exists(files.wal) ? Database::Mode::kKeepLog : Database::Mode::kWithoutLog;
  TRY_ASSIGN(Database database, Database::open(files.database.string(), mode));
  // Makes SQLite read a file that is shorter than its header says.
  sqlite3_db_config(database.handle(), SQLITE_DBCONFIG_DEFENSIVE, 0, nullptr);
  TRY(database.execute("PRAGMA writable_schema = ON"));
  TRY(database.execute("PRAGMA cell_size_check = ON"));
  TRY(check_schema(database, migrations()));
  TRY_ASSIGN(const std::int64_t version, schema_version(database, migrations()));
  TRY(check_tables(database, version));
  return database;
}

base::Result<Inventory> take_inventory(const RowSource& source, const StoreFiles& files,
                                       std::vector<std::string> damages) {
  Inventory inventory;
  inventory.mark = read_mark(files.marker);
  inventory.report.file = files.database;
  inventory.report.damages = std::move(damages);
  inventory.report.schema_version = migrations().back().version;
  if (source.database) {
    TRY_ASSIGN(inventory.report.schema_version, schema_version(*source.database, migrations()));
  }
  TRY(take_journal(source, inventory));
  TRY(take_others(source, inventory));
  TRY(take_audit(source, inventory));
  compare_audit(inventory);
  TRY(take_ledger(source, inventory));
  TRY(compare_with_head(source, inventory));
  if (source.database) {
    if (source.progress) source.progress("structure", 0);
    TRY(check_structure(*source.database, inventory.report.damages));
    TRY(compare_with_mark(*source.database, inventory));
  }
  if (!inventory.runs.empty()) {
    inventory.report.first_event = model::EventSeq(inventory.runs.front().first);
    inventory.report.last_event = model::EventSeq(inventory.runs.back().last);
  }
  return inventory;
}
base::Result<Inventory> inspect(const StoreFiles& files, const DirectoryLock& lock,
                                RowSource& source) {
  if (!file_exists(files.database)) {
    return fail(ErrorCode::kNotFound, fmt::format("there is no store in {}", files.dir.string()));
  }
  std::vector<std::string> damages;
  TRY_ASSIGN(source.database, open_for_reading(files, lock, damages));
  return take_inventory(source, files, std::move(damages));
}

}  // namespace gpu_platform::store
