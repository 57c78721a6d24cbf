#include "store/sqlite/found_rows.h"

#include <map>
#include <utility>

#include <fmt/format.h>

#include "store/batch.h"
#include "store/sqlite/audit_table.h"
#include "store/sqlite/open_database.h"
#include "store/sqlite/raw_pages.h"
#include "store/sqlite/schema.h"

namespace gpu_platform::store {

namespace {

// Rows in one transaction are copied at once.
constexpr std::uint64_t kRowsAtOnce = 10'000;

constexpr auto kInt = RawValue::Kind::kInteger;
constexpr auto kText = RawValue::Kind::kText;
constexpr auto kBlob = RawValue::Kind::kBlob;
// The key of a table with row ids is not stored in the record.
constexpr auto kKey = RawValue::Kind::kNull;

bool has_form(const RawRow& row, std::initializer_list<RawValue::Kind> kinds) {
  if (row.values.size() != kinds.size()) return false;
  auto value = row.values.begin();
  for (const RawValue::Kind kind : kinds) {
    if ((value++)->kind != kind) return false;
  }
  return true;
}

std::uint64_t unsigned_of(const RawValue& value) {
  return static_cast<std::uint64_t>(value.integer);
}

class Finder {
 public:
  Finder(const KnownRows& known, FoundRows& found) : known_(known), found_(found) {}

  base::Status take(const RawRow& row) {
    const auto key = static_cast<std::uint64_t>(row.rowid);
    if (!row.has_rowid) {
      return has_form(row, {kText, kInt, kBlob}) ? take_environment(row) : base::Status{};
    }
    if (has_form(row, {kKey, kInt, kInt, kBlob})) return take_batch(row, key);
    if (has_form(row, {kKey, kInt, kBlob})) return take_snapshot(row, key);
    if (has_form(row, {kKey, kInt, kInt, kInt, kBlob})) return take_audit(row, key);
    if (has_form(row, {kKey, kInt, kInt, kInt, kInt})) return take_head(row);
    if (has_form(row, {kKey, kInt, kText, kText, kText, kText, kInt, kInt, kBlob})) {
      return take_job(row, key);
    }
    return {};
  }

 private:
  // A statement that stands on this row, as one of the table would.
  base::Result<Statement> as_read(const RawRow& row) const {
    std::string sql = "SELECT ?";
    for (std::size_t i = 1; i < row.values.size(); ++i) sql += ", ?";
    TRY_ASSIGN(Statement statement, found_.database.prepare(sql));
    bind(row, statement);
    TRY(statement.step());
    return statement;
  }

  static void bind(const RawRow& row, Statement& statement) {
    for (const RawValue& value : row.values) {
      if (value.kind == kText) {
        statement.bind(value.bytes);
      } else if (value.kind == kBlob) {
        statement.bind_blob(value.bytes);
      } else {
        statement.bind(value.kind == kKey ? row.rowid : value.integer);
      }
    }
  }

  base::Status keep(const RawRow& row, std::string_view table, std::string_view columns) {
    std::string places = "?";
    for (std::size_t i = 1; i < row.values.size(); ++i) places += ", ?";
    TRY_ASSIGN(Statement statement,
               found_.database.prepare(fmt::format("INSERT OR REPLACE INTO {}({}) VALUES ({})",
                                                   table, columns, places)));
    bind(row, statement);
    TRY(statement.run());
    if (++found_.rows % kRowsAtOnce == 0) return found_.database.execute("COMMIT; BEGIN");
    return {};
  }

  base::Status take_batch(const RawRow& row, std::uint64_t first) {
    const std::uint64_t count = unsigned_of(row.values[1]);
    const StoredBatch batch{first, count, unsigned_of(row.values[2]), row.values[3].bytes};
    if (count == 0 || count > batch.payload.size() || batch.last_seq() < first) return {};
    if (known_.has_events(first, batch.last_seq()) || overlaps(first, batch.last_seq())) return {};
    const auto pass = [](const model::EventRecord&) -> base::Status { return {}; };
    if (!visit_batch(batch, {}, pass)) return {};
    batches_[first] = batch.last_seq();
    return keep(row, "journal", kBatchColumns);
  }

  bool overlaps(std::uint64_t first, std::uint64_t last) const {
    const auto behind = batches_.upper_bound(last);
    return behind != batches_.begin() && std::prev(behind)->second >= first;
  }

  base::Status take_snapshot(const RawRow& row, std::uint64_t upto) {
    if (known_.has_snapshot(upto)) return {};
    TRY_ASSIGN(const Statement read, as_read(row));
    return snapshot_of_row(read) ? keep(row, "snapshots", kSnapshotColumns) : base::Status{};
  }

  base::Status take_audit(const RawRow& row, std::uint64_t first_seq) {
    if (known_.has_audit(first_seq)) return {};
    TRY_ASSIGN(const Statement read, as_read(row));
    return audit_row_of(read) ? keep(row, "audit", kAuditColumns) : base::Status{};
  }

  base::Status take_job(const RawRow& row, std::uint64_t id) {
    const std::uint64_t archived_seq = unsigned_of(row.values[1]);
    const auto former = jobs_.find(id);
    if (known_.has_job(id) || (former != jobs_.end() && former->second >= archived_seq)) return {};
    TRY_ASSIGN(const Statement read, as_read(row));
    if (!job_of_row(read)) return {};
    jobs_[id] = archived_seq;
    return keep(row, "jobs", kJobColumns);
  }

  base::Status take_environment(const RawRow& row) {
    if (known_.has_environment(row.values[0].bytes)) return {};
    TRY_ASSIGN(const Statement read, as_read(row));
    return environment_of_row(read) ? keep(row, "environments", kEnvironmentColumns)
                                    : base::Status{};
  }

  base::Status take_head(const RawRow& row) {
    const auto head = head_of(
        {unsigned_of(row.values[1]), unsigned_of(row.values[2]), unsigned_of(row.values[3])},
        unsigned_of(row.values[4]));
    const bool is_newer =
        head && (!found_.head || head->last_seq > found_.head->last_seq ||
                 (head->last_seq == found_.head->last_seq && head->jobs > found_.head->jobs));
    if (is_newer) found_.head = *head;
    return {};
  }

  const KnownRows& known_;
  FoundRows& found_;
  std::map<std::uint64_t, std::uint64_t> batches_;  // first to last event
  std::map<std::uint64_t, std::uint64_t> jobs_;     // id to archived_seq
};

}  // namespace

base::Result<FoundRows> find_rows(const StoreFiles& files, const KnownRows& known) {
  TRY(create_database(files.found, migrations()));
  FoundRows found;
  TRY_ASSIGN(found.database, Database::open(files.found.string(), Database::Mode::kReadWrite));
  TRY(found.database.execute("PRAGMA synchronous = OFF"));
  TRY(found.database.execute("BEGIN"));
  Finder finder(known, found);
  TRY(visit_raw_rows(files.database, files.wal,
                     [&](const RawRow& row) { return finder.take(row); }));
  TRY(found.database.execute("COMMIT"));
  return found;
}

}  // namespace gpu_platform::store
