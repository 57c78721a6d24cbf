#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "model/audit_query.h"
#include "store/audit_batch.h"
#include "store/sqlite/database.h"
#include "store/store.h"

// The tables of the audit trail: one row for each batch that has entries, in `audit`, and the keys
// that lead to it in `audit_users`, `audit_jobs` and `audit_submissions`.

namespace gpu_platform::store {

// What the table holds.
struct AuditExtent {
  std::uint64_t entries = 0;
  std::uint64_t oldest = 0;  // first_seq of the oldest row; 0: there is none
  base::Instant oldest_at;
  std::uint64_t newest = 0;
};

struct AuditRow {
  std::uint64_t first_seq = 0;
  std::vector<model::AuditEntry> entries;  // ascending, not empty
};

// The writing side: prepared statements, kept as long as the connection.
class AuditWriter {
 public:
  AuditWriter() = default;
  static base::Result<AuditWriter> prepare(const Database& database);

  base::Result<AuditExtent> read_extent();
  // The entries of a batch, where it has any, and what is to go then. `extent` is that of the table
  // before and after; after an error, or where the transaction fails, it is not true.
  base::Status put(const Commit& commit, AuditExtent& extent);
  base::Status put(const AuditRow& row);

 private:
  base::Status drop_oldest(AuditExtent& extent);
  base::Status change_keys(std::uint64_t batch, const AuditKeys& keys, Statement& user,
                           Statement& job, Statement& submission);

  Statement extent_;
  Statement row_;
  Statement oldest_;
  Statement next_;
  Statement put_user_;
  Statement put_job_;
  Statement put_submission_;
  Statement drop_;
  Statement drop_user_;
  Statement drop_job_;
  Statement drop_submission_;
};

inline constexpr std::string_view kAuditColumns = "first_seq, at_ns, count, checksum, payload";
// kDataLoss, with a message that names the record, when it does not verify.
base::Result<AuditRow> audit_row_of(const Statement& row);

// Rows that may hold what is asked for, newest first, in kAuditColumns.
struct AuditSql {
  std::string text;
  std::vector<std::int64_t> parameters;
};
AuditSql audit_sql(const model::AuditQuery& query);

}  // namespace gpu_platform::store
