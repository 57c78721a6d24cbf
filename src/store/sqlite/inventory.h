#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/sqlite/audit_table.h"
#include "store/sqlite/data_dir.h"
#include "store/sqlite/database.h"
#include "store/sqlite/durable_mark.h"
#include "store/sqlite/found_rows.h"
#include "store/sqlite/ledger_table.h"
#include "store/sqlite/records.h"
#include "store/sqlite/repair.h"

// What a check or a recovery finds in the files of a store that may be damaged: the records that
// verify, and everything that is wrong.

namespace gpu_platform::store {

struct StoredTable {
  std::string_view name;
  std::string_view key;  // its first column
  std::string_view columns;
  bool has_text_key = false;
};
inline constexpr StoredTable kJournal{"journal", "first_seq", kBatchColumns};
inline constexpr StoredTable kSnapshots{"snapshots", "upto", kSnapshotColumns};
inline constexpr StoredTable kJobs{"jobs", "id", kJobColumns};
inline constexpr StoredTable kAudit{"audit", "first_seq", kAuditColumns};
inline constexpr StoredTable kLedger{"ledger", "first_seq", kLedgerColumns};
inline constexpr StoredTable kLedgerNames{"ledger_names", "id", kLedgerNameColumns};
inline constexpr StoredTable kEnvironments{"environments", "ref", kEnvironmentColumns, true};

// What a damaged store's rows are read from.
struct RowSource {
  std::optional<Database> database;  // what SQLite gives; nothing where it gives none
  std::optional<FoundRows> found;    // what else there is; only a recovery looks for it
  StoreProgress progress = {};       // sees each scan
};

// Visits every row that can be read. kDataLoss from visit and from SQLite are noted in `damages`;
// other errors end the scan.
using VisitRow = std::function<base::Status(const Statement& row)>;
base::Status scan(const RowSource& source, const StoredTable& table, const VisitRow& visit,
                  std::vector<std::string>& damages);

// Entries of the audit trail, counted by the first event of their batch.
using EntryCounts = std::map<std::uint64_t, std::uint64_t>;

// What the files hold that verifies.
struct Inventory {
  std::vector<EventRange> runs;
  EntryCounts audit_made;  // by the journal's events
  EntryCounts audit_kept;  // in the table
  bool is_audit_whole = true;
  std::map<std::uint64_t, std::string> names;  // of the ledger, by their numbers
  LedgerGap ledger_gap;
  bool is_ledger_whole = true;
  bool is_outdated = false;  // it lacks what the mark says
  std::vector<std::uint64_t> snapshots;
  std::vector<std::uint64_t> jobs;  // ascending
  std::set<std::string, std::less<>> environments;
  std::optional<Head> head;
  std::optional<Mark> mark;
  StoreReport report;
};

// Databases of the first version have no audit trail.
inline bool has_audit(const Inventory& inventory) {
  return inventory.report.schema_version >= 2;
}

inline bool has_ledger(const Inventory& inventory) {
  return inventory.report.schema_version >= 4;
}
// Refers to the inventory.
NameOfNumber name_of(const Inventory& inventory);

// The database as it is, also where its size or its log are not as they should be; what is wrong
// with them is added to `damages`. kDataLoss when SQLite does not give its tables. Changes nothing.
base::Result<Database> open_for_reading(const StoreFiles& files, const DirectoryLock& lock,
                                        std::vector<std::string>& damages);

// Reads and verifies everything. `damages`: what is known to be wrong already.
base::Result<Inventory> take_inventory(const RowSource& source, const StoreFiles& files,
                                       std::vector<std::string> damages);

// Both for a store's database; it is left in `source`. kNotFound where there is none.
base::Result<Inventory> inspect(const StoreFiles& files, const DirectoryLock& lock,
                                RowSource& source);

}  // namespace gpu_platform::store
