#include "store/sqlite/schema.h"

#include <array>

#include <fmt/format.h>

#include "base/check.h"

namespace gpu_platform::store {

using base::ErrorCode;
using base::fail;

namespace {

// head has one row. It is rewritten with every batch, so that a journal that lost its end, or an
// archive that lost jobs, is noticed.
//
// jobs: the columns before payload repeat what payload holds, for the indices. archived_seq is the
// last event of the batch that brought the job here. Indices that serve "newest first" have id
// second; those columns that only filter follow, so that no row is read in vain.
//
// audit: the entries of the audit trail that the journal's batch of that first_seq makes.
// audit_by_time also counts them. audit_submissions: the first of the jobs that were submitted in
// the batch; their ids are consecutive.
//
// Versions 1 and 2 were never released: their records cannot be read any more.
constexpr std::string_view kVersion3 = R"sql(
CREATE TABLE head(
  id INTEGER PRIMARY KEY CHECK (id = 1),
  first_seq INTEGER NOT NULL,
  last_seq INTEGER NOT NULL,
  jobs INTEGER NOT NULL,
  checksum INTEGER NOT NULL);
CREATE TABLE journal(
  first_seq INTEGER PRIMARY KEY,
  count INTEGER NOT NULL,
  checksum INTEGER NOT NULL,
  payload BLOB NOT NULL);
CREATE TABLE snapshots(
  upto INTEGER PRIMARY KEY,
  checksum INTEGER NOT NULL,
  state BLOB NOT NULL);
CREATE TABLE jobs(
  id INTEGER PRIMARY KEY,
  archived_seq INTEGER NOT NULL,
  user TEXT NOT NULL,
  team TEXT NOT NULL,
  name TEXT NOT NULL,
  state TEXT NOT NULL,
  ended_at_ns INTEGER NOT NULL,
  checksum INTEGER NOT NULL,
  payload BLOB NOT NULL);
CREATE INDEX jobs_by_user ON jobs(user, id, ended_at_ns, state);
CREATE INDEX jobs_by_team ON jobs(team, id, ended_at_ns, state);
CREATE INDEX jobs_by_name ON jobs(name);
CREATE INDEX jobs_by_unhappy_state ON jobs(state, id, ended_at_ns) WHERE state <> 'COMPLETED';
CREATE INDEX jobs_by_end ON jobs(ended_at_ns, state);
CREATE TABLE job_labels(
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  job INTEGER NOT NULL,
  PRIMARY KEY (key, value, job)) WITHOUT ROWID;
CREATE TABLE environments(
  ref TEXT PRIMARY KEY,
  checksum INTEGER NOT NULL,
  bytes BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE audit(
  first_seq INTEGER PRIMARY KEY,
  at_ns INTEGER NOT NULL,
  count INTEGER NOT NULL,
  checksum INTEGER NOT NULL,
  payload BLOB NOT NULL);
CREATE INDEX audit_by_time ON audit(at_ns, count);
CREATE TABLE audit_users(
  uid INTEGER NOT NULL,
  batch INTEGER NOT NULL,
  PRIMARY KEY (uid, batch)) WITHOUT ROWID;
CREATE TABLE audit_jobs(
  job INTEGER NOT NULL,
  batch INTEGER NOT NULL,
  PRIMARY KEY (job, batch)) WITHOUT ROWID;
CREATE TABLE audit_submissions(
  first_job INTEGER PRIMARY KEY,
  batch INTEGER NOT NULL);
)sql";

// ledger: the lines that the journal's batch of that first_seq adds, or, of a gap that was filled,
// those of that event and some that follow it. from_ms and to_ms are their span. ledger_users has
// the span of each user's lines.
//
// ledger_gap has one row as long as there is a gap. In a store of the version before, all lines are
// in it.
constexpr std::string_view kVersion4 = R"sql(
CREATE TABLE ledger(
  first_seq INTEGER PRIMARY KEY,
  from_ms INTEGER NOT NULL,
  to_ms INTEGER NOT NULL,
  count INTEGER NOT NULL,
  checksum INTEGER NOT NULL,
  payload BLOB NOT NULL);
CREATE INDEX ledger_by_time ON ledger(to_ms, from_ms);
CREATE TABLE ledger_names(
  id INTEGER PRIMARY KEY,
  checksum INTEGER NOT NULL,
  text TEXT NOT NULL UNIQUE);
CREATE TABLE ledger_users(
  name INTEGER NOT NULL,
  to_ms INTEGER NOT NULL,
  from_ms INTEGER NOT NULL,
  batch INTEGER NOT NULL,
  PRIMARY KEY (name, to_ms, from_ms, batch)) WITHOUT ROWID;
CREATE TABLE ledger_gap(
  id INTEGER PRIMARY KEY CHECK (id = 1),
  after_seq INTEGER NOT NULL,
  last_seq INTEGER NOT NULL);
INSERT INTO ledger_gap(id, after_seq, last_seq)
  SELECT 1, first_seq - 1, last_seq FROM head WHERE last_seq >= first_seq;
)sql";

constexpr std::array kMigrations{
    Migration{3, kVersion3},
    Migration{4, kVersion4},
};

base::Status apply_steps(const Database& database, std::span<const Migration> steps,
                         std::int64_t from, std::int64_t to) {
  for (const auto& step : steps) {
    if (step.version <= from || step.version > to) continue;
    TRY(database.execute(std::string(step.sql)));
    TRY(database.execute(fmt::format("PRAGMA user_version = {}", step.version)));
  }
  return {};
}

base::Result<std::string> schema_text(const Database& database) {
  TRY_ASSIGN(Statement statement,
             database.prepare("SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema "
                              "ORDER BY type, name"));
  std::string text;
  while (true) {
    TRY_ASSIGN(const bool has_row, statement.step());
    if (!has_row) return text;
    for (int column = 0; column < 4; ++column) {
      text.append(statement.text(column)).push_back('\0');
    }
  }
}

}  // namespace

std::span<const Migration> migrations() {
  return kMigrations;
}

base::Status create_schema(const Database& database, std::span<const Migration> steps) {
  CHECK(!steps.empty());
  TRY(database.execute(fmt::format("PRAGMA application_id = {}", kApplicationId)));
  return database.transaction(
      [&] { return apply_steps(database, steps, 0, steps.back().version); });
}

base::Result<std::int64_t> schema_version(const Database& database,
                                          std::span<const Migration> steps) {
  TRY_ASSIGN(const std::int64_t said, database.query_integer("PRAGMA user_version"));
  TRY_ASSIGN(const std::int64_t application, database.query_integer("PRAGMA application_id"));
  if (said != 0 || application != 0) return said;
  const auto found = schema_text(database);
  for (const Migration& step : steps) {
    TRY_ASSIGN(const Database model, Database::open("", Database::Mode::kMemory));
    TRY(apply_steps(model, steps, 0, step.version));
    TRY_ASSIGN(const std::string wanted, schema_text(model));
    if (found && *found == wanted) return step.version;
  }
  return fail(ErrorCode::kDataLoss, "the file is a SQLite database of another program");
}

base::Status check_schema(const Database& database, std::span<const Migration> steps) {
  TRY_ASSIGN(const std::int64_t version, schema_version(database, steps));
  if (version > steps.back().version) {
    return fail(ErrorCode::kFailedPrecondition,
                fmt::format("the database has schema version {}, written by a newer program; this "
                            "one supports versions up to {}. Start the newer program again",
                            version, steps.back().version));
  }
  if (version < steps.front().version) {
    return fail(ErrorCode::kFailedPrecondition,
                fmt::format("the database has schema version {}, written by a program that was "
                            "never released; this one reads versions from {} on. Begin with an "
                            "empty data directory (--data-dir)",
                            version, steps.front().version));
  }
  TRY_ASSIGN(const Database model, Database::open("", Database::Mode::kMemory));
  TRY(apply_steps(model, steps, 0, version));
  TRY_ASSIGN(const std::string wanted, schema_text(model));
  auto found = schema_text(database);
  if (!found || *found != wanted) {
    return fail(ErrorCode::kDataLoss,
                fmt::format("the list of tables is not that of schema version {}{}", version,
                            found ? "" : ": " + found.error().message));
  }
  return {};
}

base::Status upgrade_schema(const Database& database, std::span<const Migration> steps) {
  TRY(check_schema(database, steps));
  TRY_ASSIGN(const std::int64_t version, schema_version(database, steps));
  TRY_ASSIGN(const std::int64_t said, database.query_integer("PRAGMA user_version"));
  if (said == steps.back().version) return {};
  return database.transaction([&]() -> base::Status {
    // A copy from a dump does not say whose it is.
    TRY(database.execute(fmt::format("PRAGMA application_id = {}", kApplicationId)));
    TRY(database.execute(fmt::format("PRAGMA user_version = {}", version)));
    return apply_steps(database, steps, version, steps.back().version);
  });
}

}  // namespace gpu_platform::store
