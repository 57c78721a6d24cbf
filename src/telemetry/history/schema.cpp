#include "telemetry/history/schema.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/check.h"
#include "store/sqlite/data_dir.h"

namespace gpu_platform::telemetry {

namespace {

// A disk that damages all files must not be filled with them.
constexpr int kMaxAside = 3;
constexpr base::Instant kLatest{std::int64_t{7'258'118'400} * 1'000'000'000};  // 2200-01-01

// The log is copied into the file at 4 MiB, and a longer one is cut back to that.
constexpr const char* kSettings[] = {
    "PRAGMA auto_vacuum = INCREMENTAL",  // before the first table, and before the log
    "PRAGMA journal_mode = WAL",           "PRAGMA synchronous = NORMAL",
    "PRAGMA journal_size_limit = 4194304", "PRAGMA cache_size = -4096",
    "PRAGMA cell_size_check = ON",         "PRAGMA temp_store = MEMORY",
};

constexpr const char* kTables = R"(
CREATE TABLE subjects (id INTEGER PRIMARY KEY, of INTEGER NOT NULL, node TEXT NOT NULL,
                       uuid TEXT NOT NULL, job INTEGER NOT NULL, attempt INTEGER NOT NULL,
                       counters BLOB NOT NULL, UNIQUE (uuid, of, node, job, attempt));
CREATE TABLE names (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE blocks (id INTEGER PRIMARY KEY, subject INTEGER NOT NULL, tier INTEGER NOT NULL,
                     span INTEGER NOT NULL, begins INTEGER NOT NULL, is_piece INTEGER NOT NULL,
                     bytes BLOB NOT NULL);
CREATE INDEX blocks_of_subject ON blocks (subject, tier, span);
CREATE INDEX blocks_by_age ON blocks (tier, span);
CREATE INDEX pieces ON blocks (tier, span, subject) WHERE is_piece = 1;
CREATE TABLE notes (name TEXT PRIMARY KEY, bytes BLOB NOT NULL);
CREATE TABLE facts (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
)";

base::Status make_tables(const store::Database& database) {
  return database.transaction([&]() -> base::Status {
    TRY(database.execute(kTables));
    return database.execute(fmt::format("PRAGMA user_version = {}", kHistoryVersion));
  });
}

base::Result<std::string> tables_of(const store::Database& database) {
  return database.query_text(
      "SELECT coalesce(group_concat(sql, ';'), '') FROM "
      "(SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name)");
}

// kDataLoss if the tables are not those that make_tables() makes: statements would fail on them.
base::Status check_tables(const store::Database& database) {
  TRY_ASSIGN(const store::Database fresh,
             store::Database::open("", store::Database::Mode::kMemory));
  TRY(fresh.execute(kTables));
  TRY_ASSIGN(const std::string expected, tables_of(fresh));
  TRY_ASSIGN(const std::string found, tables_of(database));
  if (found == expected) return {};
  return base::fail(base::ErrorCode::kDataLoss, "its tables are not those of a history");
}

}  // namespace

base::Duration span_of(Tier tier) {
  return tier == Tier::kRaw ? base::hours(1) : base::hours(24);
}

base::Instant believed(base::Instant at) {
  return std::clamp(at, base::Instant(), kLatest);
}

base::Instant floor_to(base::Instant at, base::Duration length) {
  CHECK(length.value() > 0);
  return base::Instant(believed(at).unix_ns() / length.value() * length.value());
}

base::Result<store::Database> open_history(const std::filesystem::path& path) {
  if (!store::file_exists(path)) TRY(store::create_private_file(path));
  TRY_ASSIGN(store::Database database,
             store::Database::open(path.string(), store::Database::Mode::kReadWrite));
  for (const char* const setting : kSettings) TRY(database.execute(setting));
  TRY_ASSIGN(const bool has_tables, check_form(database));
  if (!has_tables) {
    TRY(make_tables(database));
    TRY(check_tables(database));
  }
  return database;
}

base::Result<bool> check_form(const store::Database& database) {
  TRY_ASSIGN(const std::int64_t version, database.query_integer("PRAGMA user_version"));
  if (version > kHistoryVersion || version < 0) {
    return base::fail(base::ErrorCode::kDataLoss,
                      fmt::format("it has version {}, and this program knows up to version {}",
                                  version, kHistoryVersion));
  }
  if (version == 0) return false;
  TRY(check_tables(database));
  return true;
}

base::Result<std::string> put_aside(const std::filesystem::path& path) {
  std::string aside;
  for (int number = 1; number <= kMaxAside; ++number) {
    aside = fmt::format("{}.damaged-{}", path.string(), number);
    if (!store::file_exists(aside)) break;
  }
  TRY(store::rename_file(path, aside));
  // The log belongs to the file: beside a new one it would be read as the new one's.
  for (const char* const end : {"-wal", "-shm"}) {
    const std::string beside = path.string() + end;
    if (store::file_exists(beside)) TRY(store::rename_file(beside, aside + end));
  }
  return aside;
}

}  // namespace gpu_platform::telemetry
